package sqlstore_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m, openAddress)) }

// address is what [storetest.Main] opens: a driver, a table and a dsn.
func address(driver, table, dsn string) string { return driver + " " + table + " " + dsn }

func openAddress(address string) (store.Store, error) {
	parts := strings.SplitN(address, " ", 3)
	return openServer(context.Background(), parts[0], parts[2], parts[1])
}
