// Package decisions has the tests of what people decide about calls that wait:
// whatever ids a provider gives, a decision hits the call that was shown, and an
// effect happens once.
package decisions
