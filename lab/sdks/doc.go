// Package sdks tests package wire with the SDKs that Go programs use, against
// servers that are as strict as the providers. It is a separate module, so
// that only its tests get the SDKs.
package sdks
