package sqlstore

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/agentstate/state/internal/announce"
	"github.com/agentstate/state/store"
)

// filePresence makes names present by locks on bytes of a file, one byte per
// name. The file remains empty: a lock may be beyond its end. The file is not
// the database, because SQLite has locks there, which the system may release
// when any descriptor of the file is closed.
type filePresence struct {
	path     string // of the file
	database string // path whose permissions a new file gets
	table    string
}

// lockFile is a file on which this process has locks. A system that has only
// the locks of POSIX, which belong to the process, releases all of them when
// any descriptor of the file is closed, and shows a process no lock of its own.
// All handles of the process therefore share a descriptor.
type lockFile struct {
	file *os.File
	info fs.FileInfo
	held map[int64]bool // offsets of locked bytes
}

// lockFiles has the files on which this process has locks, by path. Nothing
// else opens these files.
var lockFiles = struct {
	sync.Mutex
	byPath map[string]*lockFile
}{byPath: map[string]*lockFile{}}

// errLockFileGone reports a lock file that was removed or replaced.
var errLockFileGone = errors.New("the lock file was removed or replaced")

// offset returns the byte of a name. If two of the 2^62 names have the same,
// one of them is present because the other is.
func (p *filePresence) offset(name string) int64 {
	hash := newNameHash(p.table, name)
	return int64(binary.BigEndian.Uint64(hash[:]) >> 2)
}

// open returns the lock file. The caller holds the mutex of lockFiles, and
// calls closeUnused.
func (p *filePresence) open(create bool) (*lockFile, error) {
	if f := lockFiles.byPath[p.path]; f != nil && f.checkPath(p.path) == nil {
		return f, nil
	}
	file, err := os.OpenFile(p.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) && create {
		file, err = p.create()
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &lockFile{file: file, info: info, held: map[int64]bool{}}, nil
}

// create creates the lock file with the permissions of the database, so that
// all users of the database can lock it.
func (p *filePresence) create() (*os.File, error) {
	info, err := os.Stat(p.database)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, info.Mode().Perm())
	if err != nil {
		return nil, err
	}
	_ = file.Chmod(info.Mode().Perm()) // fails if another user has just created it
	return file, nil
}

func (f *lockFile) checkPath(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(info, f.info) {
		return errLockFileGone
	}
	return nil
}

// closeUnused closes a file without locks.
func (f *lockFile) closeUnused(path string) error {
	if len(f.held) > 0 {
		return nil
	}
	if lockFiles.byPath[path] == f {
		delete(lockFiles.byPath, path)
	}
	return f.file.Close()
}

// fileClaim is a locked byte.
type fileClaim struct {
	path   string
	file   *lockFile
	offset int64
}

func (p *filePresence) claim(_ context.Context, name string) (announce.Claim, error) {
	offset := p.offset(name)
	lockFiles.Lock()
	defer lockFiles.Unlock()
	f, err := p.open(true)
	if err != nil {
		return announce.Claim{}, err
	}
	if f.held[offset] {
		return announce.Claim{}, store.ErrConflict
	}
	if err := lockByte(f.file, offset); err != nil {
		_ = f.closeUnused(p.path)
		return announce.Claim{}, err
	}
	f.held[offset] = true
	lockFiles.byPath[p.path] = f
	c := &fileClaim{path: p.path, file: f, offset: offset}
	return announce.Claim{Interval: time.Second, Check: c.check, Release: c.release}, nil
}

func (p *filePresence) isPresent(_ context.Context, name string) (bool, error) {
	offset := p.offset(name)
	lockFiles.Lock()
	defer lockFiles.Unlock()
	f, err := p.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if f.held[offset] {
		return true, nil
	}
	taken, err := isByteLocked(f.file, offset)
	return taken, errors.Join(err, f.closeUnused(p.path))
}

func (c *fileClaim) check(context.Context) error {
	return c.file.checkPath(c.path)
}

func (c *fileClaim) release(context.Context) error {
	lockFiles.Lock()
	defer lockFiles.Unlock()
	delete(c.file.held, c.offset)
	return errors.Join(unlockByte(c.file.file, c.offset), c.file.closeUnused(c.path))
}
