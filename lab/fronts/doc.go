// Package fronts tests the adapters for pages with real front ends in a browser:
// CopilotKit and assistant-ui on package aguistate, and useChat on package aisdkstate.
//
// The tests need Chromium, which scripts/browser installs, and the pages, which npm
// builds: npm ci --prefix lab/fronts/pages, and npm run build there. Without
// them they are skipped, or fail if STATE_TEST_REQUIRE contains pages. With
// STATE_SCREENSHOTS=FOLDER, pictures are written to a folder, for a person to look at.
package fronts
