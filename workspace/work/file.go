package work

// File is a file of a user, such as a picture.
type File struct {
	Type string `json:"type"`           // the MIME type, without parameters
	Name string `json:"name,omitempty"` // of at most 255 bytes, without a path
	Data []byte `json:"data"`
}
