package inspect

import (
	"slices"
	"strconv"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// storeInfo is what the header says of the store.
type storeInfo struct {
	Store    string `json:"store"`
	Survives string `json:"survives"` // what a write survives
	ReadOnly bool   `json:"read_only"`
}

func newStoreInfo(i workspace.Info) storeInfo {
	return storeInfo{i.Store, durabilityWords[i.Durability], i.ReadOnly}
}

var durabilityWords = map[store.Durability]string{
	store.DurabilityProcess:  "nothing",
	store.DurabilityServer:   "the end of the process",
	store.DurabilityPower:    "a loss of power",
	store.DurabilityFailover: "the loss of a machine",
}

// storeData is the data of the page about the store and the Manager.
type storeData struct {
	storeInfo
	Durability string          `json:"durability"`
	Abilities  []abilityRow    `json:"abilities"`
	Keys       []text          `json:"keys"` // the first one seals
	Options    []optionRow     `json:"options"`
	Stats      []counterGroup  `json:"-"`
	Counters   workspace.Stats `json:"stats"`
}

// abilityRow is an optional interface of a store.
type abilityRow struct {
	Name  string `json:"name"`
	Has   bool   `json:"has"`
	Words string `json:"-"`
}

type optionRow struct {
	Name  string `json:"name"`
	Value text   `json:"value"`
}

// counterGroup are counters that belong together.
type counterGroup struct {
	Title string
	Rows  []counterRow
}

type counterRow struct {
	Name  string
	Value string
	Bad   bool // it is not 0 and needs attention
}

// abilityWords are the optional interfaces of package store.
var abilityWords = []struct{ name, words string }{
	{"Transactor", "changes rows of the program in one transaction with a workspace"},
	{"Watcher", "reports changes as they happen"},
}

// store shows the store, the options of the Manager and what it has done.
func (h *Handler) store(c *call) (*page, error) {
	info := h.manager.Info()
	mask := &masker{}
	data := storeData{
		storeInfo: newStoreInfo(info), Durability: info.Durability.String(), Keys: []text{},
		Options: optionsOf(mask, info), Counters: h.manager.Stats(),
	}
	for _, a := range abilityWords {
		data.Abilities = append(data.Abilities, abilityRow{a.name, slices.Contains(info.Abilities, a.name), a.words})
	}
	for _, key := range info.Keys[:min(len(info.Keys), pageRows)] {
		data.Keys = append(data.Keys, mask.fit(key.ID, labelBytes, false).Text)
	}
	data.Stats = countersOf(data.Counters)
	return &page{Name: "store", Title: "Store", Tab: "store", Data: data}, nil
}

// optionsOf returns the options of a Manager in words.
func optionsOf(mask *masker, i workspace.Info) []optionRow {
	yes := func(b bool) string {
		if b {
			return "yes"
		}
		return "no"
	}
	keep := func(n int) string {
		if n < 0 {
			return "all"
		}
		return "the last " + strconv.Itoa(n)
	}
	busy := map[workspace.Busy]string{
		workspace.BusyEnqueue: "waits", workspace.BusyInterrupt: "interrupts the run", workspace.BusyReject: "is rejected",
		workspace.BusyRollback: "rolls the run back",
	}[i.Busy]
	takeover := "continues with its committed changes"
	if i.Takeover == workspace.TakeoverRestart {
		takeover = "begins again without its changes"
	}
	rows := []optionRow{
		{"Handles messages", text(yes(i.Run != nil))},
		{"Schema", text(yes(i.Schema != nil))},
		{"A message during a run", text(busy)},
		{"Waiting messages", text("at most " + strconv.Itoa(i.Queue) + ", " + formatBytes(i.QueueBytes))},
		{"Runs at once", text("at most " + strconv.Itoa(i.Runs))},
		{"Lease", text(formatSpan(i.TTL))},
		{"Attempts", text("at most " + strconv.Itoa(i.Attempts))},
		{"A run that is taken over", text(takeover)},
		{"Dead letters", text("at most " + strconv.Itoa(i.DeadLetters))},
		{"Messages kept", text(keep(i.Messages))},
		{"Results kept", text(keep(i.Results))},
		{"Tracer", text(yes(i.Tracer != nil))},
	}
	if i.Holder != "" {
		rows = append(rows, optionRow{"Holder", mask.fit(i.Holder, labelBytes, false).Text})
	}
	return rows
}

// countersOf returns the counters of a Manager in groups.
func countersOf(s workspace.Stats) []counterGroup {
	row := func(name string, n int64) counterRow { return counterRow{Name: name, Value: strconv.FormatInt(n, 10)} }
	bad := func(name string, n int64) counterRow { return counterRow{name, strconv.FormatInt(n, 10), n > 0} }
	return []counterGroup{
		{"Runs", []counterRow{
			row("held now", int64(s.Held)), row("attempts begun", s.Started), row("finished", s.Done), bad("failed", s.Failed),
			row("ended by another caller", s.Interrupted), bad("lost to another holder", s.Fenced), bad("taken over", s.TakenOver),
			bad("dead letters", s.DeadLetters), bad("functions left behind", s.Abandoned),
		}},
		{"Messages", []counterRow{
			row("had to wait", s.Queued), row("rejected", s.Rejected), row("accepted before", s.Duplicates),
			row("workspaces remembered", int64(s.Workspaces)),
		}},
		{"Writes", []counterRow{
			row("commits", s.Commits), row("conflicts", s.Conflicts), bad("of unknown outcome", s.UnknownOutcomes),
			bad("store errors", s.StoreErrors),
			row("heartbeats", s.Heartbeats), bad("late heartbeats", s.LateHeartbeats), row("compactions", s.Compactions),
			{Name: "written", Value: formatBytes(int(s.BytesWritten))},
		}},
	}
}
