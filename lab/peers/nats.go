package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsLimit publishes the message and its answer to a stream, and waits for
// both acknowledgements.
type natsLimit struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	set    string
	answer model
}

func openNATSLimit(ctx context.Context, s site, answer model) (handler, error) {
	nc, js, err := s.jetstream()
	if err != nil {
		return nil, err
	}
	if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: s.set, Subjects: []string{s.set + ".>"}}); err != nil {
		nc.Close()
		return nil, fmt.Errorf("peers: create the stream: %w", err)
	}
	return &natsLimit{nc, js, s.set, answer}, nil
}

func (l *natsLimit) fill(context.Context, []string) error { return nil }

func (l *natsLimit) handle(ctx context.Context, m message) (string, error) {
	if _, err := l.js.Publish(ctx, l.set+".user."+m.user, []byte(m.text)); err != nil {
		return "", err
	}
	reply := l.answer(m)
	_, err := l.js.Publish(ctx, l.set+".assistant."+m.user, []byte(reply))
	return reply, err
}

func (l *natsLimit) texts(ctx context.Context, user string) (texts []string, err error) {
	subject := l.set + ".user." + user
	c, err := l.js.OrderedConsumer(ctx, l.set, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		return nil, err
	}
	messages, err := c.FetchNoWait(1000)
	if err != nil {
		return nil, err
	}
	for m := range messages.Messages() {
		texts = append(texts, string(m.Data()))
	}
	return texts, messages.Error()
}

func (l *natsLimit) close() error {
	l.nc.Close()
	return nil
}

// natsJSON replaces a document in a key-value bucket if nobody else has
// replaced it in the meantime.
type natsJSON struct {
	nc     *nats.Conn
	kv     jetstream.KeyValue
	answer model
}

func openNATSJSON(ctx context.Context, s site, answer model) (handler, error) {
	nc, js, err := s.jetstream()
	if err != nil {
		return nil, err
	}
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: s.set})
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("peers: create the bucket: %w", err)
	}
	return &natsJSON{nc, kv, answer}, nil
}

func (j *natsJSON) fill(ctx context.Context, users []string) error {
	for _, user := range users {
		data, err := newDocument(user)
		if err != nil {
			return err
		}
		if _, err := j.kv.Put(ctx, user, data); err != nil {
			return fmt.Errorf("peers: fill: %w", err)
		}
	}
	return nil
}

func (j *natsJSON) handle(ctx context.Context, m message) (string, error) {
	for {
		var data []byte
		var revision uint64
		found, err := j.kv.Get(ctx, m.user)
		switch {
		case err == nil:
			data, revision = found.Value(), found.Revision()
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return "", err
		}
		changed, reply, err := change(data, m, j.answer)
		if err != nil {
			return "", err
		}
		if revision == 0 {
			_, err = j.kv.Create(ctx, m.user, changed)
		} else {
			_, err = j.kv.Update(ctx, m.user, changed, revision)
		}
		if err == nil {
			return reply, nil
		}
		if !isConflict(err) {
			return "", err
		}
	}
}

func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

func (j *natsJSON) texts(ctx context.Context, user string) ([]string, error) {
	found, err := j.kv.Get(ctx, user)
	if err != nil {
		return nil, err
	}
	return documentTexts(found.Value())
}

func (j *natsJSON) close() error {
	j.nc.Close()
	return nil
}
