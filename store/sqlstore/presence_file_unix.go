//go:build unix

package sqlstore

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"

	"github.com/agentstate/state/store"
)

// lockCommands returns the numbers of the commands of fcntl that test and set a
// lock. On Linux and macOS it returns those of locks that belong to the open
// file, and that no other descriptor of the file releases. Package syscall
// does not have them on all architectures.
func lockCommands() (get, set int) {
	switch runtime.GOOS {
	case "linux", "android":
		return 36, 37 // F_OFD_GETLK, F_OFD_SETLK
	case "darwin", "ios":
		return 92, 90
	}
	return syscall.F_GETLK, syscall.F_SETLK
}

func byteLock(kind int16, offset int64) *syscall.Flock_t {
	return &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: offset, Len: 1}
}

// lockByte returns store.ErrConflict if another process has locked the byte.
func lockByte(file *os.File, offset int64) error {
	_, set := lockCommands()
	err := syscall.FcntlFlock(file.Fd(), set, byteLock(syscall.F_WRLCK, offset))
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return store.ErrConflict
	}
	return err
}

func unlockByte(file *os.File, offset int64) error {
	_, set := lockCommands()
	return syscall.FcntlFlock(file.Fd(), set, byteLock(syscall.F_UNLCK, offset))
}

// isByteLocked reports whether another process has locked the byte. It takes no
// lock that another process could meet.
func isByteLocked(file *os.File, offset int64) (bool, error) {
	get, _ := lockCommands()
	lock := byteLock(syscall.F_WRLCK, offset)
	err := syscall.FcntlFlock(file.Fd(), get, lock)
	return lock.Type != syscall.F_UNLCK, err
}
