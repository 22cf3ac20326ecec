// Secrets shows that the value of a secret field reaches those who may read it,
// and nothing that is printed.
package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/url"
	"os"

	"github.com/agentstate/state"
)

var (
	Host = &state.Field[string]{Name: "host"}
	Key  = &state.Field[string]{Name: "api_key", Secret: true, Validate: func(key string) error {
		if len(key) < 12 {
			return errors.New("too short: " + key)
		}
		return nil
	}}
	schema = state.MustSchema(Host, Key)
)

func main() {
	st := state.New(schema)
	check(Host.Set(st, "api.example.com"))
	check(Key.Set(st, "sk/82 Kd0+xyz"))

	// Whoever may read it gets it, through its own door.
	key, err := Key.Get(st)
	check(err)
	fmt.Println("the tool has a key of", len(key), "characters")

	// Everything that is printed or listed holds the mask.
	fmt.Printf("%%+v:      %+v", st)
	view, err := json.Marshal(st)
	check(err)
	fmt.Printf("JSON:     %s\n", view)
	fmt.Println("All:     ", st.KV().All())
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	logger.Info("step", "state", st, "all", st.KV().All())
	for c, err := range st.Changes(1) {
		check(err)
		fmt.Println("journal: ", c.Op, c.Field, c.Value)
	}

	// Errors too, though a validation would have told. And the mask is no value.
	fmt.Println("error:   ", Key.Set(st, "sk/short"))
	fmt.Println("error:   ", st.KV().Set("api_key", state.Masked{}))

	// Redact masks it in any other text, however it is written there.
	text := "GET /v1?key=" + url.QueryEscape(key) + "\nAuthorization: Basic " +
		base64.StdEncoding.EncodeToString([]byte("user:"+key)) + "\n401: key " + key + " is not valid"
	fmt.Printf("\nRedact:\n%s\n", st.Redact(text))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
