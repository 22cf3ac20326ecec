package sqlstore

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"

	"github.com/agentstate/state/store"
)

// lockByte returns store.ErrConflict if another process has locked the byte. It
// tries for a moment, because isByteLocked of another process may have.
func lockByte(file *os.File, offset int64) error {
	for try := 0; ; try++ {
		err := windows.LockFileEx(windows.Handle(file.Fd()),
			windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, byteAt(offset))
		if !errors.Is(err, windows.ERROR_LOCK_VIOLATION) && !errors.Is(err, windows.ERROR_IO_PENDING) {
			return err
		}
		if try == 10 {
			return store.ErrConflict
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func unlockByte(file *os.File, offset int64) error {
	return windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, byteAt(offset))
}

// isByteLocked reports whether another process has locked the byte. Windows
// does not say without a lock, which others may share.
func isByteLocked(file *os.File, offset int64) (bool, error) {
	err := windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, byteAt(offset))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, unlockByte(file, offset)
}

func byteAt(offset int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(offset), OffsetHigh: uint32(offset >> 32)}
}
