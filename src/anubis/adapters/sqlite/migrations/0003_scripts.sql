-- Script mode: a run and a schedule remember the archive of code that was submitted beside their
-- descriptor. The plan names it too, but is gone when the run has ended.

ALTER TABLE run ADD COLUMN document_script TEXT NOT NULL DEFAULT '';
ALTER TABLE schedule ADD COLUMN document_script TEXT NOT NULL DEFAULT '';

-- Which archives schedules still need: asked whenever archives that nobody uses are removed.
CREATE INDEX schedule_by_script ON schedule (document_script) WHERE document_script <> '';
