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
	// A value is stored after the bits of its revision. The sequence numbers of
	// a bucket are no revisions: one that is made again or restored has them again.
	revisionSize = 16
	// headerSize is more than the headers of a write have.
	headerSize = 256

	operation      = "KV-Operation"
	markerReason   = "Nats-Marker-Reason"
	expectSequence = "Nats-Expected-Last-Subject-Sequence"

	codeTooLarge = 10054
)

// found is the last message of a key.
type found struct {
	store.Entry
	exists   bool   // false if it is a marker, or there is none
	sequence uint64 // 0 if there is none
}

// Get returns the entry of a key, or ErrNotFound.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	entry, err := s.get(ctx, key)
	if err != nil {
		return store.Entry{}, fail("get", key, err)
	}
	return entry, nil
}

func (s *Store) get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return store.Entry{}, err
	}
	defer end()
	last, err := s.last(ctx, key)
	if err != nil {
		return store.Entry{}, s.ended(err)
	}
	if !last.exists {
		return store.Entry{}, store.ErrNotFound
	}
	return last.Entry, nil
}

// Put writes a value if the condition holds.
func (s *Store) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	revision := store.NewRevision()
	err := store.CheckKey(key)
	if err == nil && int64(len(value)) > s.nc.MaxPayload()-revisionSize-headerSize {
		err = store.ErrTooLarge
	}
	if err == nil {
		data := make([]byte, 0, revisionSize+len(value))
		data, _ = hex.AppendDecode(data, []byte(revision)) // is hexadecimal
		err = s.write(ctx, key, nats.Header{}, append(data, value...), cond)
	}
	if err != nil {
		return "", fail("put", key, err)
	}
	return revision, nil
}

// Delete removes a key if the condition holds.
func (s *Store) Delete(ctx context.Context, key string, cond store.Condition) error {
	err := store.CheckKey(key)
	if err == nil && cond.Absent() {
		err = fmt.Errorf("%w: delete if absent", store.ErrInvalid)
	}
	if err == nil {
		err = s.write(ctx, key, nats.Header{operation: {"DEL"}}, nil, cond)
	}
	if err != nil {
		return fail("delete", key, err)
	}
	return nil
}

// write publishes the next message of a key if the condition holds for the last
// one. The server makes it only if that still is the last one then.
func (s *Store) write(ctx context.Context, key string, header nats.Header, data []byte, cond store.Condition) error {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	for {
		if cond != store.Always {
			last, err := s.last(ctx, key)
			if err != nil {
				return s.ended(err)
			}
			if !cond.Holds(last.Revision, last.exists) {
				return store.ErrConflict
			}
			header[expectSequence] = []string{strconv.FormatUint(last.sequence, 10)}
		}
		if s.nc.IsClosed() {
			return s.ended(nats.ErrConnectionClosed)
		}
		_, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: s.subject + encodeKey(key), Header: header, Data: data})
		// There is a newer message, or may be one soon: the condition decides again.
		if cond == store.Always || !overtaken(err) {
			return s.outcome(err)
		}
	}
}

func overtaken(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// outcome says what the error of a write means. What fails in a server may have
// been made by its peers before.
func (s *Store) outcome(err error) error {
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
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, s.ended(err))
}

// last reads the last message of a key from the leader.
func (s *Store) last(ctx context.Context, key string) (found, error) {
	msg, err := s.stream.GetLastMsgForSubject(ctx, s.subject+encodeKey(key))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return found{}, nil
	case err != nil:
		return found{}, err
	case msg.Header.Get(operation) != "" || msg.Header.Get(markerReason) != "":
		return found{sequence: msg.Sequence}, nil
	}
	entry, err := decodeEntry(key, msg.Data)
	return found{entry, true, msg.Sequence}, err
}

func decodeEntry(key string, data []byte) (store.Entry, error) {
	if len(data) < revisionSize {
		return store.Entry{}, errors.New("the entry was written by something else")
	}
	return store.Entry{
		Key:      key,
		Value:    data[revisionSize:],
		Revision: store.Revision(hex.EncodeToString(data[:revisionSize])),
	}, nil
}
