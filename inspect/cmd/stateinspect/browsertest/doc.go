// Package browsertest tests the pages of package inspect, and that of examples/web,
// in a real browser.
//
// The tests need Chromium and axe-core, which scripts/browser installs. Without
// them they are skipped, or fail if STATE_TEST_REQUIRE contains browser. With
// STATE_SCREENSHOTS=FOLDER, pictures of all pages are written to a folder, for a
// person to look at: docs/inspector.png is live.png of TestLive.
package browsertest
