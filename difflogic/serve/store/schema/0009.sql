ALTER TABLE jobs ADD COLUMN predicted_s INTEGER; -- of a training: seconds on two cores, predicted from its configuration
-- When each job begins is asked for often: of the rows, which have kilobytes of configuration, nothing is read for it.
CREATE INDEX queue ON jobs (
    priority DESC, number, id, owner, kind, engine, device, not_before, predicted_s, saved_epoch, epochs, attempt,
    until_solved
) WHERE status = 'queued';
CREATE INDEX speeds ON jobs (number DESC, device, trained_s, predicted_s, epoch, epochs)
    WHERE status = 'done' AND kind = 'train' AND restarts = 0 AND until_solved = 0;
