package kit

import (
	"flag"
	"os"
)

// Updating reports whether files of testdata are to be written: if the test
// binary defines a boolean flag update that is set, or by STATETEST_UPDATE=1.
func Updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true" || os.Getenv("STATETEST_UPDATE") == "1"
}
