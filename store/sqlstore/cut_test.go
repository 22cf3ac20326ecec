package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
)

func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknownOutcome) }

func TestPostgresCut(t *testing.T) {
	s := newServer(t, "postgres")
	for _, mode := range []string{"cache_statement", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) { testCut(t, s, s.withParameter(t, "default_query_exec_mode", mode)) })
	}
}

// A statement without arguments of a program that shares its pool is made once if
// its answer is lost. pgx before 5.13.0 reported it as not sent, in each mode, and
// database/sql made it again and returned nil.
func TestPostgresLostAnswerOnSharedPool(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			s := newServer(t, "postgres")
			s.url = s.withParameter(t, "default_query_exec_mode", mode)
			proxy := testkit.NewProxy(t, s.host(t))
			table := s.table(t)
			db := openPool(t, "pgx", s.withHost(t, proxy.Addr()))
			shared, err := sqlstore.New(t.Context(), db, sqlstore.Postgres(), &sqlstore.Options{Table: table})
			require.NoError(t, err)

			proxy.CutAfter(testkit.ToClient, 0)
			_, err = db.ExecContext(t.Context(), withTable("insert into TABLE (k, v, rev) values (gen_random_uuid()::text::bytea, '', '')", table))
			require.True(t, proxy.Disarm())
			require.Error(t, err)
			require.Len(t, contents(t, shared), 1)
		})
	}
}

func TestMySQLCut(t *testing.T) {
	s := newServer(t, "mysql")
	testCut(t, s, s.url)
}

// testCut cuts the connection at a random byte of a write and compares the result of
// the write with the stored values. Each round has its own keys, so that the second
// check of all rounds finds writes that the server made late.
func testCut(t *testing.T, s *server, dsn string) {
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	proxy := testkit.NewProxy(t, u.Host)
	u.Host = proxy.Addr()
	table := s.table(t)
	direct, proxied := s.open(t, s.url, table), s.open(t, u.String(), table)

	const rounds = 400
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	all := make([]cutRound, rounds)
	made, notMade, cuts := 0, 0, 0 // made and notMade count unknown outcomes
	for i := range all {
		r := &all[i]
		r.prepare(t, random, direct, i)
		if random.IntN(4) > 0 { // otherwise, the write may have to connect first
			_, _ = store.Get(t.Context(), proxied, "warm")
		}
		if random.IntN(3) > 0 {
			proxy.CutAfter(testkit.ToServer, random.IntN(len(r.writes[0].Value)+400))
		} else {
			proxy.CutAfter(testkit.ToClient, random.IntN(150))
		}
		r.makeWrites(t.Context(), proxied)
		if proxy.Disarm() {
			cuts++
		}
		happened := r.check(t, direct)
		switch {
		case isUnknown(r.err) && happened:
			made++
		case isUnknown(r.err):
			notMade++
		}
	}
	for _, r := range all {
		r.check(t, direct)
	}
	t.Logf("%d rounds, %d cut, %d outcomes unknown: %d made, %d not", rounds, cuts, made+notMade, made, notMade)
	require.Greater(t, cuts, rounds/4)
	require.Positive(t, made)
	require.Positive(t, notMade)
}

// cutRound is one call with writes whose conditions hold.
type cutRound struct {
	name   string
	writes []store.Write
	before []string // previous values, "" for none
	err    error
}

func (r *cutRound) prepare(t *testing.T, random *rand.Rand, direct store.Store, i int) {
	t.Helper()
	value := make([]byte, 1+random.IntN(2000))
	if random.IntN(10) == 0 {
		value = make([]byte, 100_000)
	}
	for i := range value {
		value[i] = byte(random.Uint32())
	}
	key := fmt.Sprintf("key %d", i)
	old := fmt.Sprintf("old %d", i)
	revision, err := store.Put(t.Context(), direct, key, []byte(old), store.IfAbsent)
	require.NoError(t, err)
	switch random.IntN(5) {
	case 0:
		r.name, r.before = "overwrite", []string{old}
		r.writes = []store.Write{{Key: key, Value: value}}
	case 1:
		r.name, r.before = "compare and set", []string{old}
		r.writes = []store.Write{{Key: key, Value: value, Cond: store.IfRevision(revision)}}
	case 2:
		r.name, r.before = "create", []string{""}
		r.writes = []store.Write{{Key: key + " new", Value: value, Cond: store.IfAbsent}}
	case 3:
		r.name, r.before = "delete", []string{old}
		r.writes = []store.Write{{Key: key, Delete: true, Cond: store.IfRevision(revision)}}
	default:
		r.name, r.before = "batch", []string{old, ""}
		r.writes = []store.Write{
			{Key: key, Value: value, Cond: store.IfRevision(revision)},
			{Key: key + " new", Value: value, Cond: store.IfAbsent},
		}
	}
}

func (r *cutRound) makeWrites(ctx context.Context, s store.Store) {
	w := r.writes[0]
	switch {
	case len(r.writes) > 1:
		_, r.err = s.Batch(ctx, r.writes)
	case w.Delete:
		r.err = store.Delete(ctx, s, w.Key, w.Cond)
	default:
		_, r.err = store.Put(ctx, s, w.Key, w.Value, w.Cond)
	}
}

// check reports whether the writes were made. It fails the test if the error says
// otherwise.
func (r *cutRound) check(t *testing.T, direct store.Store) bool {
	t.Helper()
	var made, notMade int
	for i, w := range r.writes {
		value := ""
		entry, err := store.Get(t.Context(), direct, w.Key)
		if !errors.Is(err, store.ErrNotFound) {
			require.NoError(t, err)
			value = string(entry.Value)
		}
		switch value {
		case string(w.Value):
			made++
		case r.before[i]:
			notMade++
		default:
			require.Fail(t, "the value is neither the old nor the new one", r.name)
		}
	}
	// There is no other writer: a conflict would be with the first attempt of the call.
	require.NotErrorIs(t, r.err, store.ErrConflict, "%s: %d writes made, %d not", r.name, made, notMade)
	require.True(t, made == 0 || notMade == 0, "%s: %d writes made, %d not", r.name, made, notMade)
	switch {
	case r.err == nil:
		require.Zero(t, notMade, "%s: acknowledged but not made", r.name)
	case !isUnknown(r.err):
		require.Zero(t, made, "%s: made although Put returned %v", r.name, r.err)
	}
	return made > 0
}
