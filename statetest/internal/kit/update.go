package kit

import (
	"flag"
	"os"
)

// Updating reports whether files of testdata are to be written: if the test
// binary defines a boolean flag update that is set, or by STATETEST_UPDATE=1.
func Updating() bool {
	if os.Getenv("STATETEST_UPDATE") == "1" {
		return true
	}
	f := flag.Lookup("update")
	if f == nil {
		return false
	}
	getter, ok := f.Value.(flag.Getter)
	if !ok {
		return false
	}
	set, ok := getter.Get().(bool)
	return ok && set
}
