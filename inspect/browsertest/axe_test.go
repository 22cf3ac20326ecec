package browsertest

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// view is a way to look at a page.
type view struct {
	name          string
	dark          bool
	width, height int64
	zoom          float64
}

var views = []view{
	{"light", false, 1280, 1024, 1},
	{"dark", true, 1280, 1024, 1},
	{"narrow", false, 320, 640, 1},
	{"zoomed", true, 320, 256, 4}, // a window of 1280 × 1024 at 400 %
}

// violation is what axe-core finds.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// TestAccessible checks each page with axe-core, and that a person need not scroll
// sideways.
func TestAccessible(t *testing.T) {
	axe := readAxe(t)
	file := newDesk(t)
	newProcess(t, file).do("begin bob Where is my parcel?")
	origin := serve(t, openDesk(t, file), everything)
	for _, v := range views {
		t.Run(v.name, func(t *testing.T) {
			tb := newTab(t, origin)
			tb.dark(v.dark)
			_, err := chromedp.Call(tb.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
				Width: v.width, Height: v.height, DeviceScaleFactor: v.zoom,
			})
			require.NoError(t, err)
			for _, p := range pages {
				tb.open(p.path)
				require.LessOrEqual(t, evaluate[int64](tb, "document.documentElement.scrollWidth"), v.width, p.name)
				require.Empty(t, tb.forgive())
				tb.do(chromedp.Evaluate[chromedp.Void](axe))
				found := evaluate[[]violation](tb, `axe.run({resultTypes: ["violations"]}).then(r => r.violations)`, chromedp.EvalAwaitPromise)
				for _, f := range found {
					for _, n := range f.Nodes {
						t.Errorf("%s: %s (%s)\n%s\n%s", p.name, f.Help, f.ID, n.HTML, n.Summary)
					}
				}
				tb.forgive() // axe-core asks for styles that the page may not have
			}
		})
	}
}
