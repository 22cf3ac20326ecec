package workspace

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
)

// openName is the Options.Name of a Manager, in its store. Of two Managers with one, the
// newer has the name, since the other may be dead, and takes the runs of the other. If
// that is open in this process, it is a mistake, or a test of what follows a death.
type openName struct {
	db   store.Store
	name string
}

// openNames has the Managers of this process that are open, by their names.
var openNames sync.Map // openName -> *Manager

// take takes the name. It returns ErrHolder if another Manager has it.
func (n openName) take(m *Manager) error {
	if n.name == "" || m.readOnly || !reflect.ValueOf(n.db).Comparable() {
		return nil
	}
	if _, taken := openNames.Swap(n, m); taken {
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
