package view

import (
	"context"
	"slices"
	"sync"

	"github.com/agentstate/state/workspace"
)

const (
	// maxViews and maxViewBytes bound the views that a Handler keeps. The bytes
	// are those of the stored content.
	maxViews     = 64
	maxViewBytes = 64 << 20
)

// viewKey identifies a version of a workspace as it was after a write. Even the
// view of an old version changes with writes: it has the present run and queue.
// The write is named by its revision, since numbers of writes and versions begin
// again with a new workspace of the same user.
type viewKey struct {
	user     string
	revision string
	at       uint64
	past     bool
}

// cachedView is a view and what was found out about its records.
type cachedView struct {
	key   viewKey
	view  *workspace.View
	bytes int

	mu   sync.Mutex
	last map[string]lastChange // by field; nil if it was not asked for
	// previews are those of long values, by field.
	previews map[string]value
}

// viewCache keeps the views that were used last.
type viewCache struct {
	mu    sync.Mutex
	list  []*cachedView // the latest last
	bytes int
}

func (c *viewCache) get(key viewKey) *cachedView {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, func(v *cachedView) bool { return v.key == key })
	if i < 0 {
		return nil
	}
	v := c.list[i]
	c.list = append(slices.Delete(c.list, i, i+1), v)
	return v
}

func (c *viewCache) put(v *cachedView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(func(old *cachedView) bool {
		// The views of another write are not asked for again.
		return old.key == v.key || old.key.user == v.key.user && old.key.revision != v.key.revision
	})
	if v.bytes > maxViewBytes {
		return
	}
	c.list = append(c.list, v)
	c.bytes += v.bytes
	for len(c.list) > maxViews || c.bytes > maxViewBytes {
		c.bytes -= c.list[0].bytes
		c.list = slices.Delete(c.list, 0, 1)
	}
}

// drop forgets the views of a user whose workspace is gone.
func (c *viewCache) drop(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(func(v *cachedView) bool { return v.key.user == user })
}

// remove removes views. The lock must be held.
func (c *viewCache) remove(gone func(v *cachedView) bool) {
	c.list = slices.DeleteFunc(c.list, gone)
	c.bytes = 0
	for _, v := range c.list {
		c.bytes += v.bytes
	}
}

// view returns a version of a workspace, from the cache if it is there.
func (src *Source) view(ctx context.Context, key viewKey, bytes int) (*cachedView, error) {
	if v := src.views.get(key); v != nil {
		return v, nil
	}
	v := &cachedView{key: key, bytes: bytes}
	var err error
	if key.past {
		v.view, err = src.manager.ViewAt(ctx, key.user, key.at)
	} else {
		v.view, err = src.manager.View(ctx, key.user)
	}
	if err != nil {
		return nil, err
	}
	src.views.put(v)
	return v, nil
}
