package sqlstore_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

// A pooler gives each transaction another connection of the server.
func TestPgBouncer(t *testing.T) {
	s := newServer(t, "postgres")
	pooled := s.startPgBouncer(t)
	storetest.Run(t, func(t *testing.T) func() store.Store {
		table := s.table(t)
		return func() store.Store { return s.open(t, pooled, table) }
	})
}

// startPgBouncer starts PgBouncer in transaction mode in front of the server, and
// returns its URL.
func (s *server) startPgBouncer(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), "pgbouncer") {
			t.Fatal("PgBouncer is not installed, but STATE_TEST_REQUIRE demands it")
		}
		t.Skip("NOT TESTED: PgBouncer is not installed")
	}
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	password, ok := u.User.Password()
	if ok {
		password = " password=" + password
	}
	folder, err := os.MkdirTemp("", "pgbouncer") // that another user may read
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	require.NoError(t, os.Chmod(folder, 0o755))
	file := filepath.Join(folder, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `[databases]
%s = host=%s port=%s user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 10
max_client_conn = 400
ignore_startup_parameters = extra_float_digits
`, u.Path[1:], u.Hostname(), u.Port(), u.User.Username(), password, port), 0o644))
	cmd := exec.Command(program, "-q", file)
	if os.Getuid() == 0 { // which it refuses
		cmd = exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "-q", file)
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	testkit.Until(func() bool {
		conn, err := net.Dial("tcp", u.Host)
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	})
	return u.String()
}
