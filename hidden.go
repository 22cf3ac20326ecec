package state

import "github.com/agentstate/state/internal/engine"

// hiddenFrom calls yield with each value of a Secret field and, unless agent is
// "", of a field that agent may not read. The rights of the handle do not
// count. References are left out: no code looks into them.
func (h *handle) hiddenFrom(agent string, yield func(field string, secret bool, value any)) {
	host := *h
	host.rights = nil
	reader := host
	if agent != "" {
		reader.rights = h.schema.access.of(agent)
	}
	give := func(sp *fieldSpec, at engine.Address, c *engine.Cell) {
		if c == nil || sp.form.Reference || !sp.form.Secret && reader.mayRead(sp) {
			return
		}
		yield(addressName(at), sp.form.Secret, sp.form.Load(c.Value))
	}
	f := h.branch.Freeze()
	for sp, at := range host.readable(f) {
		give(sp, at, f.Get(at))
	}
	for sp, at := range host.readable(h.overlaid(f)) { // in an order that is the same each time
		give(sp, at, h.overlay[at])
	}
	for _, c := range h.covered {
		give(c.spec, c.spec.address(), c.cell)
	}
}
