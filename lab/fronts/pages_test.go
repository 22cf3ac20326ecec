package fronts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// all are the pages.
var all = []string{"copilotkit", "usechat", "assistant"}

// each runs a test with each page.
func each(t *testing.T, pages []string, test func(t *testing.T, d *desk, page string)) {
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			test(t, newDesk(t), page)
		})
	}
}

// A page talks, shows thoughts and calls, and is whole when it is opened again.
func TestAChat(t *testing.T) {
	each(t, all, func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.say("think Hello Ann")
		tb.see("HELLO ANN")
		if page != "copilotkit" { // which folds them
			tb.see("Hm, so.")
		}
		tb.say("call note milk/title Groceries")
		tb.see("noted milk", "GROCERIES")
		tb.wait(`document.querySelector("#title").value === "Groceries"`)
		tb.picture(page + "-chat")
		tb.load()
		tb.see("HELLO ANN", "noted milk", "GROCERIES")
		second := d.open(page, "2")
		second.see()
		require.NotContains(t, second.text(), "HELLO ANN", "a thread of its own")
	})
}

// A person approves a call, with other arguments where the page can say so.
func TestAnApproval(t *testing.T) {
	each(t, all, func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.say("call pay cake/say thanks")
		tb.wait(`document.querySelector("#yes")`)
		tb.picture(page + "-approval")
		tb.click("#yes")
		paid := "paid cake"
		if page == "copilotkit" {
			paid = "paid less"
		}
		tb.see(paid, "THANKS")
		tb.say("call pay tea/say again")
		tb.wait(`document.querySelector("#no")`)
		tb.click("#no")
		tb.see("AGAIN")
		require.Empty(t, d.view("1").Suspended())
		require.NotContains(t, tb.text(), "paid tea")
	})
}

// The second tab of a person shows what waits, and decides about it. That of
// assistant-ui shows the call alone: what loads its history brings no interrupts.
func TestAnApprovalInASecondTab(t *testing.T) {
	each(t, all, func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.say("call pay cake/say thanks")
		tb.wait(`document.querySelector("#yes")`)
		second := d.open(page, "1")
		second.see("pay")
		if page == "assistant" {
			require.False(t, second.is(`document.querySelector("#yes")`, time.Second), "it can now: say so in docs/agui.md")
			return
		}
		second.wait(`document.querySelector("#yes")`)
		second.click("#yes")
		second.see("THANKS")
		second.picture(page + "-second")
	})
}

// While a call waits, the person says more, and decides about one of two calls.
func TestCallsThatWait(t *testing.T) {
	each(t, all[:1], func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.say("call pay cake/say thanks")
		tb.wait(`document.querySelectorAll(".waits").length === 1`)
		tb.say("say meanwhile")
		tb.see("MEANWHILE")
		tb.say("call pay tea/say again")
		tb.wait(`document.querySelectorAll(".waits").length === 2`)
		tb.picture(page + "-two")
		tb.click("#no")
		tb.wait(`document.querySelectorAll(".waits").length === 1`)
		tb.see("AGAIN")
		tb.click("#yes")
		tb.see("paid less")
		require.Empty(t, d.view("1").Suspended())
	})
}

// A page that is opened again in the middle of an answer goes on with it.
func TestAReloadInMidAnswer(t *testing.T) {
	each(t, all, func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.say("say one two hold three four")
		tb.wait(shows("ONE TWO"))
		tb.load()
		tb.wait(shows("say one two"))
		if page != "assistant" { // which loads its history once
			tb.wait(shows("ONE TWO"))
			tb.wait(`document.querySelector("#status").innerText === "running"`)
		}
		d.goOn <- struct{}{}
		if page == "assistant" {
			require.False(t, tb.is(shows("THREE FOUR"), time.Second), "it goes on now: say so in docs/agui.md")
			tb.load()
		}
		tb.see("ONE TWO HOLD THREE FOUR")
	})
}

// Stop ends the run on the server, and the question stays.
func TestStop(t *testing.T) {
	each(t, all, func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.say("say one hold two")
		tb.wait(shows("ONE"))
		tb.click("#stop")
		require.Eventually(t, func() bool { return d.view("1").Run == nil }, patience, 10*time.Millisecond)
		tb.see("say one hold two")
		tb.say("say three")
		tb.see("THREE", "say one hold two", "say three")
		tb.load()
		tb.see("THREE", "say one hold two", "say three")
	})
}

// A question whose run fails is told, and stays, without what only programmers may
// know.
func TestAFailure(t *testing.T) {
	each(t, all, func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.say("fail it")
		require.Eventually(t, func() bool { return len(d.view("1").DeadLetters) == 1 }, patience, 10*time.Millisecond)
		tb.see("fail it")
		tb.load()
		tb.see("fail it")
		tb.say("call note fail/say well")
		tb.see("WELL", "fail it")
		require.NotContains(t, tb.text(), "sk-123")
		require.NotContains(t, tb.text(), "db-7")
	})
}

// A page that is opened again offers to try again what has failed.
func TestATryAgain(t *testing.T) {
	each(t, all[:1], func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.say("fail once")
		tb.wait(`document.querySelector("#retry")`)
		require.Eventually(t, func() bool { return len(d.view("1").DeadLetters) == 1 }, patience, 10*time.Millisecond)
		tb.load()
		tb.see("fail once")
		d.ok.Store(true)
		tb.click("#retry")
		tb.see("ONCE")
		tb.wait(`!document.querySelector("#retry")`)
	})
}

// What was said is edited, and said again.
func TestEditAndRegenerate(t *testing.T) {
	each(t, all, func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.say("think one")
		tb.see("ONE")
		tb.say("think two")
		tb.see("TWO")
		switch page {
		case "copilotkit":
			tb.evaluate(`window.prompt = () => "think three"`)
			tb.click(`[data-testid="copilot-edit-button"]`)
		case "usechat":
			tb.click(".edit")
			tb.say("think three")
		default:
			tb.click(".edit")
			tb.enter("#edited", "think three")
			tb.click("#again")
		}
		tb.see("ONE", "THREE")
		require.NotContains(t, tb.text(), "TWO")
		tb.click(map[string]string{"copilotkit": `[aria-label="Regenerate"]`, "usechat": "#regenerate", "assistant": ".regenerate"}[page])
		require.Eventually(t, func() bool { return len(d.branches()) == 3 }, patience, 10*time.Millisecond)
		tb.see("ONE", "THREE")
		tb.picture(page + "-again")
		require.Len(t, saidIn(d.view("1")), 4, "the thread stays as it is")
		tb.load()
		tb.see("ONE", "THREE")
		require.NotContains(t, tb.text(), "TWO")
	})
}

// A person edits a field, and the page has a tool of its own.
func TestFieldsAndToolsOfThePage(t *testing.T) {
	each(t, all[:1], func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.see()
		tb.enter("#title", "Mine")
		tb.say("call color sky/say thanks")
		tb.see("sky is green", "THANKS")
		require.Equal(t, "Mine", title.GetOr(d.view("1").State(), ""))
	})
}

// A person sends a picture.
func TestAPicture(t *testing.T) {
	each(t, all[:2], func(t *testing.T, d *desk, page string) {
		tb := d.open(page, "1")
		tb.evaluate(`(() => {
			const files = new DataTransfer();
			files.items.add(new File([Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), c => c.charCodeAt(0))], "dot.png", { type: "image/png" }));
			const input = document.querySelector("input[type=file]");
			input.files = files.files;
			input.dispatchEvent(new Event("change", { bubbles: true }));
		})()`)
		if page == "copilotkit" { // which shows what it is going to send
			tb.wait(`document.querySelector("img")`)
		}
		tb.say("say seen")
		tb.see("SEEN")
		tb.load()
		tb.see("SEEN")
		tb.wait(`document.querySelector("img").naturalWidth === 1`)
	})
}
