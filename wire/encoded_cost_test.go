package wire_test

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/wire"
)

// What a State keeps of what was encoded is at most one and a half times as large as
// the request.
func TestWhatWasEncodedIsSmall(t *testing.T) {
	effort.Cost(t)
	const states, messages = 200, 100
	for _, a := range apis {
		sent := 0
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			sent += int(req.ContentLength)
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.whole)), Request: req}, nil
		})
		client := &http.Client{Transport: &wire.Transport{Base: base}}
		var held []*state.State
		for range states {
			st := newState(t, longConversation(t, a, messages)...)
			require.NoError(t, st.UserSays("And then?"))
			_, err := readAll(post(t, client, st, "http://host"+a.path, a.body(false)))
			require.NoError(t, err)
			held = append(held, st)
		}
		with := heap()
		for _, st := range held {
			state.Inside(internal.Key{}).Encoded(st).Store((*provider.Encoded)(nil))
		}
		kept := with - heap()
		runtime.KeepAlive(held)
		t.Logf("%s: %d bytes kept of a request of %d, State and all %d", a.format, kept/states, sent/states, with/states)
		require.Less(t, kept, sent*3/2, a.format)
		require.Greater(t, kept, sent/2, "%s: it is measured", a.format)
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
