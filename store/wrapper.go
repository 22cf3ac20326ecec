package store

// Wrapper is a Store that passes calls on to another one, for example to count
// or to trace them. It can have the methods of every optional interface:
// [As] says that it has one only if the other store has it as well.
//
// A method of an optional interface that the other store does not have returns
// an error that wraps errors.ErrUnsupported.
type Wrapper interface {
	Store

	// Unwrap returns the other store.
	Unwrap() Store
}

// As returns s as a store of an optional interface, such as [Watcher]. It reports
// whether s is such a store. A Wrapper is one only if the store in it is one as
// well, so use As instead of a type assertion:
//
//	if w, ok := store.As[store.Watcher](s); ok {
//		for event, err := range w.Watch(ctx, "user/") {
//			…
//		}
//	}
func As[T Store](s Store) (T, bool) {
	own, ok := s.(T)
	for ok {
		w, wraps := s.(Wrapper)
		if !wraps {
			return own, true
		}
		s = w.Unwrap()
		_, ok = s.(T)
	}
	var none T
	return none, false
}
