package work

import "time"

// Note is what somebody has noted about a message of the conversation, such as a
// thumb. It is no part of the conversation: models are not shown it.
type Note struct {
	Message int       `json:"message"`      // its number
	By      string    `json:"by,omitempty"` // the agent for who has noted it; empty for the host
	Text    string    `json:"text"`
	Time    time.Time `json:"time"`
}
