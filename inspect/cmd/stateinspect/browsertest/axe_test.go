package browsertest

import (
	"fmt"
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
	long          bool // too long for -short: axe-core finds here what it finds in another view
}

var views = []view{
	{"light", false, 1280, 1024, 1, false},
	{"dark", true, 1280, 1024, 1, false},
	{"narrow", false, 320, 640, 1, true},
	{"phone", false, 360, 740, 1, false},
	{"phone-dark", true, 360, 740, 1, true},
	{"zoomed", true, 320, 256, 4, true}, // a window of 1280 × 1024 at 400 %
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
// sideways. It takes pictures of them. With -short, axe-core checks half of the views.
func TestAccessible(t *testing.T) {
	axe := readAxe(t)
	sites := newSites(t)
	for _, v := range views {
		t.Run(v.name, func(t *testing.T) {
			for _, site := range sites {
				tb := newTab(t, site.origin)
				tb.dark(v.dark)
				_, err := chromedp.Call(tb.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
					Width: v.width, Height: v.height, DeviceScaleFactor: v.zoom,
				})
				require.NoError(t, err)
				for _, p := range site.pages {
					p.show(tb)
					tb.picture(fmt.Sprintf("%s-%s-%s", site.name, p.name, v.name))
					require.LessOrEqual(t, evaluate[int64](tb, "document.documentElement.scrollWidth"), v.width, p.name)
					require.Empty(t, tb.forgive())
					if v.long && testing.Short() {
						continue
					}
					for _, f := range tb.violations(axe) {
						for _, n := range f.Nodes {
							t.Errorf("%s of %s: %s (%s)\n%s\n%s", p.name, site.name, f.Help, f.ID, n.HTML, n.Summary)
						}
					}
				}
			}
		})
	}
}

// violations returns what axe-core finds in the page.
func (tb *tab) violations(axe string) []violation {
	tb.t.Helper()
	tb.do(chromedp.Evaluate[chromedp.Void](axe))
	found := evaluate[[]violation](tb, `axe.run({resultTypes: ["violations"]}).then(r => r.violations)`, chromedp.EvalAwaitPromise)
	tb.forgive() // axe-core asks for styles that the page may not have
	return found
}
