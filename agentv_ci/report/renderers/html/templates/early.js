"use strict";

// What is to be known before anything is drawn: that scripts run, and which theme somebody chose.

document.documentElement.classList.replace("no-script", "script");
try {
  const theme = localStorage.getItem("agentv-ci-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Some viewers of files keep nothing; then the system's theme stays.
}
