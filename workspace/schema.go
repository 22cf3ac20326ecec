package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
)

// schemaKey is the key of the published schema. No key of a workspace, of a
// holder or of [Manager.Store] is the same.
const schemaKey = "agent:schema"

// PublishSchema writes a schema to a store, for programs that show workspaces
// and have no schema of their own: see [PublishedSchema]. Call it before Open.
// It replaces the schema that was published before and writes nothing if that is
// the same. The schema is not sealed. The error matches ErrInvalid if a handler
// of the schema cannot be named: see [state.Schema.MarshalJSON].
func PublishSchema(ctx context.Context, db store.Store, s *state.Schema) error {
	if err := publishSchema(ctx, db, s); err != nil {
		return fmt.Errorf("workspace: publish schema: %w", err)
	}
	return nil
}

func publishSchema(ctx context.Context, db store.Store, s *state.Schema) error {
	if db == nil || s == nil {
		return fmt.Errorf("%w: no store or no schema", ErrInvalid)
	}
	data, err := s.MarshalJSON()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	switch e, err := store.Get(ctx, db, schemaKey); {
	case err == nil && bytes.Equal(e.Value, data):
		return nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	}
	_, err = store.Put(ctx, db, schemaKey, data, store.Always)
	return err
}

// PublishedSchema returns the schema that was last published in a store, or nil
// if there is none. It is enough to read workspaces: it has the names, the
// rights and the secrets of the fields. Types of Go are those that
// [state.ParseSchema] knows. Validate, OneOf and Convert are missing, and a
// handler of the program has its name only, so that a write that needs it fails
// with state.ErrRefused. A schema that cannot be decoded is ErrCorrupt.
func PublishedSchema(ctx context.Context, db store.Store) (*state.Schema, error) {
	s, err := publishedSchema(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("workspace: published schema: %w", err)
	}
	return s, nil
}

func publishedSchema(ctx context.Context, db store.Store) (*state.Schema, error) {
	if db == nil {
		return nil, fmt.Errorf("%w: no store", ErrInvalid)
	}
	e, err := store.Get(ctx, db, schemaKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := inside.ParseSchemaByName(e.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return s, nil
}
