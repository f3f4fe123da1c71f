"""The GitHub Action as a workflow runs it: by nektos/act in host mode, against a double of GitHub's API."""
