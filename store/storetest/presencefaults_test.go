package storetest_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agentstate/state/store"
)

// onNames replaces each name before the store sees it.
func (b *broken) onNames(replace func(name string) string) {
	b.announce = func(ctx context.Context, name string) (<-chan struct{}, func() error, error) {
		return b.Memory.Announce(ctx, replace(name))
	}
	b.isPresent = func(ctx context.Context, name string) (bool, error) {
		return b.Memory.IsPresent(ctx, replace(name))
	}
}

// onAnnounced replaces the results of a successful Announce.
func (b *broken) onAnnounced(replace func(ctx context.Context, name string, lost <-chan struct{}, withdraw func() error) (<-chan struct{}, func() error)) {
	b.announce = func(ctx context.Context, name string) (<-chan struct{}, func() error, error) {
		lost, withdraw, err := b.Memory.Announce(ctx, name)
		if err == nil {
			lost, withdraw = replace(ctx, name, lost, withdraw)
		}
		return lost, withdraw, err
	}
}

func presenceFaults() []fault {
	return []fault{
		{"withdraw does nothing", "Presence/AnnounceAndWithdraw", func(b *broken) {
			b.onAnnounced(func(_ context.Context, _ string, lost <-chan struct{}, _ func() error) (<-chan struct{}, func() error) {
				return lost, func() error { return nil }
			})
		}},
		{"withdraw closes lost", "Presence/AnnounceAndWithdraw", func(b *broken) {
			b.onAnnounced(func(_ context.Context, _ string, _ <-chan struct{}, withdraw func() error) (<-chan struct{}, func() error) {
				lost := make(chan struct{})
				return lost, func() error { close(lost); return withdraw() }
			})
		}},
		{"withdraw fails when it is called again", "Presence/AnnounceAgain", func(b *broken) {
			b.onAnnounced(func(_ context.Context, _ string, lost <-chan struct{}, withdraw func() error) (<-chan struct{}, func() error) {
				called := false
				return lost, func() error {
					if called {
						return store.ErrNotFound
					}
					called = true
					return withdraw()
				}
			})
		}},
		{"a name is announced twice", "Presence/Conflict", func(b *broken) {
			b.announce = func(ctx context.Context, name string) (<-chan struct{}, func() error, error) {
				lost, withdraw, err := b.Memory.Announce(ctx, name)
				if errors.Is(err, store.ErrConflict) {
					return make(chan struct{}), func() error { return nil }, nil
				}
				return lost, withdraw, err
			}
		}},
		{"a race of two announcements has two winners", "Presence/OneContenderWins", func(b *broken) {
			b.announce = func(ctx context.Context, name string) (<-chan struct{}, func() error, error) {
				present, err := b.Memory.IsPresent(ctx, name)
				if err == nil && present {
					err = store.ErrConflict
				}
				if err != nil {
					return nil, nil, err
				}
				time.Sleep(time.Millisecond)
				lost, withdraw, err := b.Memory.Announce(ctx, name)
				if errors.Is(err, store.ErrConflict) {
					return make(chan struct{}), func() error { return nil }, nil
				}
				return lost, withdraw, err
			}
		}},
		{"names are folded", "Presence/NamesAreBytes", func(b *broken) { b.onNames(strings.ToLower) }},
		{"names are trimmed", "Presence/NamesAreBytes", func(b *broken) {
			b.onNames(func(name string) string {
				if trimmed := strings.TrimSpace(name); trimmed != "" {
					return trimmed
				}
				return name
			})
		}},
		{"names are cut", "Presence/NamesAreBytes", func(b *broken) {
			b.onNames(func(name string) string { return strings.ToValidUTF8(name[:min(len(name), 64)], "") })
		}},
		{"every name is valid", "Presence/InvalidNames", func(b *broken) {
			b.onNames(func(name string) string {
				if store.CheckKey(name) != nil {
					return "invalid"
				}
				return name
			})
		}},
		{"a name is an entry", "Presence/NamesAreNotKeys", func(b *broken) {
			b.onAnnounced(func(ctx context.Context, name string, lost <-chan struct{}, withdraw func() error) (<-chan struct{}, func() error) {
				_, _ = b.Memory.Put(ctx, name, nil, store.Always)
				return lost, withdraw
			})
		}},
		{"looking takes the name", "Presence/LooksDisturbNothing", func(b *broken) {
			b.isPresent = func(ctx context.Context, name string) (bool, error) {
				_, withdraw, err := b.Memory.Announce(ctx, name)
				if errors.Is(err, store.ErrConflict) {
					return true, nil
				}
				if err != nil {
					return false, err
				}
				time.Sleep(time.Millisecond)
				return false, withdraw()
			}
		}},
		{"an ended context announces", "Presence/EndedContext", func(b *broken) {
			b.announce = func(ctx context.Context, name string) (<-chan struct{}, func() error, error) {
				return b.Memory.Announce(context.WithoutCancel(ctx), name)
			}
		}},
		{"an announcement ends with its context", "Presence/OutlivesContext", func(b *broken) {
			b.onAnnounced(func(ctx context.Context, _ string, lost <-chan struct{}, withdraw func() error) (<-chan struct{}, func() error) {
				ended := make(chan struct{})
				context.AfterFunc(ctx, func() { close(ended); _ = withdraw() })
				return lost, func() error { <-ended; return withdraw() }
			})
		}},
		{"Close does not close lost", "Presence/Close", func(b *broken) {
			b.onAnnounced(func(_ context.Context, _ string, _ <-chan struct{}, withdraw func() error) (<-chan struct{}, func() error) {
				return make(chan struct{}), withdraw
			})
		}},
		{"a closed store announces", "Presence/Close", func(b *broken) {
			b.announce = func(ctx context.Context, name string) (<-chan struct{}, func() error, error) {
				lost, withdraw, err := b.Memory.Announce(ctx, name)
				if errors.Is(err, store.ErrClosed) {
					return make(chan struct{}), func() error { return nil }, nil
				}
				return lost, withdraw, err
			}
		}},
	}
}
