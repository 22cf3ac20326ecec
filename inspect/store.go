package inspect

import (
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

func (h *Handler) store(c *call) (*page, error) {
	return &page{Name: "store", Title: "Store", Tab: "store"}, nil
}
