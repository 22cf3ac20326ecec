package otelstate

import "github.com/agentstate/state/store"

// The optional interfaces of a store.
const (
	hasBatcher = 1 << iota
	hasWatcher
	hasLister
	hasPresence
	hasPurger
	hasTransactor // and hasBatcher
)

// shaped returns the store with exactly the methods of some optional
// interfaces: package workspace asks for them by their types.
func (s *tracedStore) shaped(shape int) store.Store {
	b, w, l, a, p, t := batches{s}, watches{s}, lists{s}, announces{s}, purges{s}, transacts{s}
	switch shape {
	case hasBatcher:
		return struct {
			*tracedStore
			batches
		}{s, b}
	case hasWatcher:
		return struct {
			*tracedStore
			watches
		}{s, w}
	case hasBatcher | hasWatcher:
		return struct {
			*tracedStore
			batches
			watches
		}{s, b, w}
	case hasLister:
		return struct {
			*tracedStore
			lists
		}{s, l}
	case hasBatcher | hasLister:
		return struct {
			*tracedStore
			batches
			lists
		}{s, b, l}
	case hasWatcher | hasLister:
		return struct {
			*tracedStore
			watches
			lists
		}{s, w, l}
	case hasBatcher | hasWatcher | hasLister:
		return struct {
			*tracedStore
			batches
			watches
			lists
		}{s, b, w, l}
	case hasPresence:
		return struct {
			*tracedStore
			announces
		}{s, a}
	case hasBatcher | hasPresence:
		return struct {
			*tracedStore
			batches
			announces
		}{s, b, a}
	case hasWatcher | hasPresence:
		return struct {
			*tracedStore
			watches
			announces
		}{s, w, a}
	case hasBatcher | hasWatcher | hasPresence:
		return struct {
			*tracedStore
			batches
			watches
			announces
		}{s, b, w, a}
	case hasLister | hasPresence:
		return struct {
			*tracedStore
			lists
			announces
		}{s, l, a}
	case hasBatcher | hasLister | hasPresence:
		return struct {
			*tracedStore
			batches
			lists
			announces
		}{s, b, l, a}
	case hasWatcher | hasLister | hasPresence:
		return struct {
			*tracedStore
			watches
			lists
			announces
		}{s, w, l, a}
	case hasBatcher | hasWatcher | hasLister | hasPresence:
		return struct {
			*tracedStore
			batches
			watches
			lists
			announces
		}{s, b, w, l, a}
	case hasPurger:
		return struct {
			*tracedStore
			purges
		}{s, p}
	case hasBatcher | hasPurger:
		return struct {
			*tracedStore
			batches
			purges
		}{s, b, p}
	case hasWatcher | hasPurger:
		return struct {
			*tracedStore
			watches
			purges
		}{s, w, p}
	case hasBatcher | hasWatcher | hasPurger:
		return struct {
			*tracedStore
			batches
			watches
			purges
		}{s, b, w, p}
	case hasLister | hasPurger:
		return struct {
			*tracedStore
			lists
			purges
		}{s, l, p}
	case hasBatcher | hasLister | hasPurger:
		return struct {
			*tracedStore
			batches
			lists
			purges
		}{s, b, l, p}
	case hasWatcher | hasLister | hasPurger:
		return struct {
			*tracedStore
			watches
			lists
			purges
		}{s, w, l, p}
	case hasBatcher | hasWatcher | hasLister | hasPurger:
		return struct {
			*tracedStore
			batches
			watches
			lists
			purges
		}{s, b, w, l, p}
	case hasPresence | hasPurger:
		return struct {
			*tracedStore
			announces
			purges
		}{s, a, p}
	case hasBatcher | hasPresence | hasPurger:
		return struct {
			*tracedStore
			batches
			announces
			purges
		}{s, b, a, p}
	case hasWatcher | hasPresence | hasPurger:
		return struct {
			*tracedStore
			watches
			announces
			purges
		}{s, w, a, p}
	case hasBatcher | hasWatcher | hasPresence | hasPurger:
		return struct {
			*tracedStore
			batches
			watches
			announces
			purges
		}{s, b, w, a, p}
	case hasLister | hasPresence | hasPurger:
		return struct {
			*tracedStore
			lists
			announces
			purges
		}{s, l, a, p}
	case hasBatcher | hasLister | hasPresence | hasPurger:
		return struct {
			*tracedStore
			batches
			lists
			announces
			purges
		}{s, b, l, a, p}
	case hasWatcher | hasLister | hasPresence | hasPurger:
		return struct {
			*tracedStore
			watches
			lists
			announces
			purges
		}{s, w, l, a, p}
	case hasBatcher | hasWatcher | hasLister | hasPresence | hasPurger:
		return struct {
			*tracedStore
			batches
			watches
			lists
			announces
			purges
		}{s, b, w, l, a, p}
	case hasBatcher | hasTransactor:
		return struct {
			*tracedStore
			batches
			transacts
		}{s, b, t}
	case hasBatcher | hasWatcher | hasTransactor:
		return struct {
			*tracedStore
			batches
			watches
			transacts
		}{s, b, w, t}
	case hasBatcher | hasLister | hasTransactor:
		return struct {
			*tracedStore
			batches
			lists
			transacts
		}{s, b, l, t}
	case hasBatcher | hasWatcher | hasLister | hasTransactor:
		return struct {
			*tracedStore
			batches
			watches
			lists
			transacts
		}{s, b, w, l, t}
	case hasBatcher | hasPresence | hasTransactor:
		return struct {
			*tracedStore
			batches
			announces
			transacts
		}{s, b, a, t}
	case hasBatcher | hasWatcher | hasPresence | hasTransactor:
		return struct {
			*tracedStore
			batches
			watches
			announces
			transacts
		}{s, b, w, a, t}
	case hasBatcher | hasLister | hasPresence | hasTransactor:
		return struct {
			*tracedStore
			batches
			lists
			announces
			transacts
		}{s, b, l, a, t}
	case hasBatcher | hasWatcher | hasLister | hasPresence | hasTransactor:
		return struct {
			*tracedStore
			batches
			watches
			lists
			announces
			transacts
		}{s, b, w, l, a, t}
	case hasBatcher | hasPurger | hasTransactor:
		return struct {
			*tracedStore
			batches
			purges
			transacts
		}{s, b, p, t}
	case hasBatcher | hasWatcher | hasPurger | hasTransactor:
		return struct {
			*tracedStore
			batches
			watches
			purges
			transacts
		}{s, b, w, p, t}
	case hasBatcher | hasLister | hasPurger | hasTransactor:
		return struct {
			*tracedStore
			batches
			lists
			purges
			transacts
		}{s, b, l, p, t}
	case hasBatcher | hasWatcher | hasLister | hasPurger | hasTransactor:
		return struct {
			*tracedStore
			batches
			watches
			lists
			purges
			transacts
		}{s, b, w, l, p, t}
	case hasBatcher | hasPresence | hasPurger | hasTransactor:
		return struct {
			*tracedStore
			batches
			announces
			purges
			transacts
		}{s, b, a, p, t}
	case hasBatcher | hasWatcher | hasPresence | hasPurger | hasTransactor:
		return struct {
			*tracedStore
			batches
			watches
			announces
			purges
			transacts
		}{s, b, w, a, p, t}
	case hasBatcher | hasLister | hasPresence | hasPurger | hasTransactor:
		return struct {
			*tracedStore
			batches
			lists
			announces
			purges
			transacts
		}{s, b, l, a, p, t}
	case hasBatcher | hasWatcher | hasLister | hasPresence | hasPurger | hasTransactor:
		return struct {
			*tracedStore
			batches
			watches
			lists
			announces
			purges
			transacts
		}{s, b, w, l, a, p, t}
	}
	return s
}
