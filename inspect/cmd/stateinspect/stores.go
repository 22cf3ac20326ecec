package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/sqlstore/postgresstore"
)

// address says where a store is.
type address struct {
	scheme string
	url    string // with the password; for sqlite the path of the file
	title  string // without it
	hide   *strings.Replacer
}

// parseAddress parses the argument of the command. Its errors contain nothing
// of a URL.
func parseAddress(text string, getenv func(string) string) (*address, error) {
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		if text = getenv(name); text == "" {
			return nil, fmt.Errorf("the environment variable %q is not set", name)
		}
	}
	scheme, rest, ok := strings.Cut(text, ":")
	a := &address{scheme: scheme, url: text}
	switch {
	case !ok:
	case scheme == "sqlite":
		if rest == "" {
			return nil, errors.New("the sqlite URL has no path")
		}
		a.url, a.title, a.hide = rest, filepath.Base(rest), strings.NewReplacer()
		return a, nil
	case scheme == "postgresql":
		a.scheme = "postgres"
		return a, a.parse()
	case scheme == "rediss":
		a.scheme = "redis"
		return a, a.parse()
	case slices.Contains([]string{"postgres", "mysql", "redis"}, scheme):
		return a, a.parse()
	}
	return nil, errors.New("the scheme of the URL is not sqlite, postgres, mysql, redis or env")
}

// parse sets the title and what errors must not contain.
func (a *address) parse() error {
	u, err := url.Parse(a.url)
	if err != nil || u.Host == "" {
		return fmt.Errorf("the %s URL cannot be parsed; a password with reserved characters must be percent-encoded",
			a.scheme)
	}
	a.title = u.Host + strings.TrimSuffix(u.Path, "/")
	password, _ := u.User.Password()
	secrets := []string{a.url, u.User.String(), password, strings.TrimPrefix(u.User.String(), u.User.Username()+":")}
	for name, values := range u.Query() {
		for _, kind := range []string{"pass", "token", "secret", "key"} {
			if strings.Contains(strings.ToLower(name), kind) {
				secrets = append(append(secrets, u.RawQuery), values...)
			}
		}
	}
	// A Replacer prefers the pair that comes first: a whole URL before a part.
	slices.SortFunc(secrets, func(x, y string) int { return cmp.Compare(len(y), len(x)) })
	var pairs []string
	for _, secret := range slices.Compact(secrets) {
		if secret != "" {
			pairs = append(pairs, secret, "…")
		}
	}
	a.hide = strings.NewReplacer(pairs...)
	return nil
}

// open opens a store that exists. Name is that of the table or the prefix of the
// Redis keys; the default of the store if it is empty.
func (a *address) open(ctx context.Context, name string) (store.Store, error) {
	s, err := a.openStore(ctx, name)
	if err != nil {
		return nil, a.conceal(err)
	}
	return s, nil
}

func (a *address) openStore(ctx context.Context, name string) (store.Store, error) {
	switch a.scheme {
	case "sqlite":
		return sqlitestore.Open(ctx, a.url, &sqlitestore.Options{Table: name, Existing: true})
	case "postgres":
		return postgresstore.Open(ctx, a.url, &sqlstore.Options{Table: name, Existing: true})
	case "mysql":
		return mysqlstore.Open(ctx, a.url, &sqlstore.Options{Table: name, Existing: true})
	default:
		return redisstore.Open(ctx, a.url, &redisstore.Options{Prefix: name, Existing: true})
	}
}

// conceal returns an error whose text does not contain the password.
func (a *address) conceal(err error) error {
	if err == nil || a.hide.Replace(err.Error()) == err.Error() {
		return err
	}
	return concealed{err, a.hide.Replace(err.Error())}
}

type concealed struct {
	err  error
	text string
}

func (c concealed) Error() string        { return c.text }
func (c concealed) Is(target error) bool { return errors.Is(c.err, target) }
