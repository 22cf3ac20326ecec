package storetest

import "time"

// Some of the broken stores block for ever, and nothing here is slow.
func init() { patience = 2 * time.Second }
