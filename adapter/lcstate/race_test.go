//go:build race

package lcstate_test

func init() { raceDetector = true }
