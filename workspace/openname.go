package workspace

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
)

// openName is the Options.Name of a Manager, in its store. Two Managers with one would
// take each other's runs. Of another process nobody knows whether it is dead, so the
// newer one has the name; of this process it is known, and an error.
type openName struct {
	db   store.Store
	name string
}

// openNames has the Managers of this process that are open, by their names.
var openNames sync.Map // openName -> *Manager

// take returns ErrHolder if another Manager has the name.
func (n openName) take(m *Manager) error {
	if n.name == "" || m.readOnly || !reflect.ValueOf(n.db).Comparable() {
		return nil
	}
	if _, taken := openNames.LoadOrStore(n, m); taken {
		return fmt.Errorf("%w: %s: this process has opened it on the same store, and not closed it", ErrHolder, fault.Quote(n.name))
	}
	return nil
}

// free lets others have the name that m has taken, if it has.
func (n openName) free(m *Manager) {
	if n.name != "" && reflect.ValueOf(n.db).Comparable() {
		openNames.CompareAndDelete(n, m)
	}
}
