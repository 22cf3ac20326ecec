package natsstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agentstate/state/store"
)

const (
	// revisionSize is the number of bytes of a revision, which precede each
	// value. Sequence numbers are not used as revisions: a bucket that is
	// created again or restored reuses them.
	revisionSize = 16
	// headerSize is the maximum size of the headers of a write.
	headerSize = 256

	operationHeader = "KV-Operation"
	markerHeader    = "Nats-Marker-Reason"
	expectedHeader  = "Nats-Expected-Last-Subject-Sequence"

	codeTooLarge = 10054
)

// lastMessage is the last message of a key.
type lastMessage struct {
	store.Entry
	exists   bool   // false if the message is a marker or the key has no message
	sequence uint64 // 0 if the key has no message
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	entry, err := s.getEntry(ctx, key)
	if err != nil {
		return store.Entry{}, newError("get", key, err)
	}
	return entry, nil
}

func (s *Store) getEntry(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return store.Entry{}, err
	}
	defer endCall()
	last, err := s.readLast(ctx, key)
	if err != nil {
		return store.Entry{}, s.withClosed(err)
	}
	if !last.exists {
		return store.Entry{}, store.ErrNotFound
	}
	return last.Entry, nil
}

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	revision := store.NewRevision()
	err := store.CheckKey(key)
	if err == nil && int64(len(value)) > s.nc.MaxPayload()-revisionSize-headerSize {
		err = store.ErrTooLarge
	}
	if err == nil {
		data := make([]byte, 0, revisionSize+len(value))
		data, _ = hex.AppendDecode(data, []byte(revision)) // never fails
		_, err = s.write(ctx, key, nats.Header{}, append(data, value...), cond)
	}
	if err != nil {
		return "", newError("put", key, err)
	}
	return revision, nil
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key string, cond store.Condition) error {
	err := store.CheckKey(key)
	if err == nil && cond.Absent() {
		err = fmt.Errorf("%w: a delete with IfAbsent", store.ErrInvalid)
	}
	if err != nil {
		return newError("delete", key, err)
	}
	sequence, err := s.write(ctx, key, deletion(), nil, cond)
	if err != nil {
		return newError("delete", key, err)
	}
	s.removeMarkers(s.subject+encodeKey(key), sequence)
	return nil
}

// deletion returns the headers of the marker of a deleted key.
func deletion() nats.Header { return nats.Header{operationHeader: {"DEL"}} }

// write publishes the next message of a key if the condition holds for the last
// message, and returns its sequence number. The server accepts it only if no
// other message has been added since. IfAbsent expects first that the key has no
// message, not even a marker: most keys are new, and need no read.
func (s *Store) write(
	ctx context.Context, key string, header nats.Header, data []byte, cond store.Condition,
) (sequence uint64, err error) {
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return 0, err
	}
	defer endCall()
	expectNone := cond.Absent()
	for {
		if expectNone {
			header[expectedHeader] = []string{"0"}
		} else if cond != store.Always {
			last, err := s.readLast(ctx, key)
			if err != nil {
				return 0, s.withClosed(err)
			}
			if !cond.Holds(last.Revision, last.exists) {
				return 0, store.ErrConflict
			}
			header[expectedHeader] = []string{strconv.FormatUint(last.sequence, 10)}
		}
		if s.nc.IsClosed() {
			return 0, s.withClosed(nats.ErrConnectionClosed)
		}
		ack, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: s.subject + encodeKey(key), Header: header, Data: data})
		// After a newer message, the condition must be checked again.
		switch {
		case err == nil:
			return ack.Sequence, nil
		case cond == store.Always || !isWrongSequence(err):
			return 0, s.classify(err)
		}
		expectNone = false
	}
}

func isWrongSequence(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// classify adds store.ErrTooLarge or store.ErrUnknownOutcome to the error of a
// write. A write that failed on one server may have been made by its peers.
func (s *Store) classify(err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	case errors.As(err, &api) && api.ErrorCode == codeTooLarge:
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	case errors.As(err, &api) && api.Code < 500,
		errors.Is(err, jetstream.ErrNoStreamResponse),
		errors.Is(err, nats.ErrReconnectBufExceeded):
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, s.withClosed(err))
}

// readLast reads the last message of a key from the leader.
func (s *Store) readLast(ctx context.Context, key string) (lastMessage, error) {
	msg, err := s.stream.GetLastMsgForSubject(ctx, s.subject+encodeKey(key))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return lastMessage{}, nil
	case err != nil:
		return lastMessage{}, err
	case msg.Header.Get(operationHeader) != "" || msg.Header.Get(markerHeader) != "":
		return lastMessage{sequence: msg.Sequence}, nil
	}
	entry, err := decodeEntry(key, msg.Data)
	return lastMessage{entry, true, msg.Sequence}, err
}

func decodeEntry(key string, data []byte) (store.Entry, error) {
	if len(data) < revisionSize {
		return store.Entry{}, errors.New("the entry was not written by this package")
	}
	return store.Entry{
		Key:      key,
		Value:    data[revisionSize:],
		Revision: store.Revision(hex.EncodeToString(data[:revisionSize])),
	}, nil
}
