const DAY_MS = 24 * 3600 * 1000;

export function isMailDue(mailedAt: Date | null, now: Date): boolean {
  return mailedAt === null || now.getTime() - mailedAt.getTime() >= DAY_MS;
}

/** Renders the e-mail with a checkpoint for a second party. @param origin the name of the log */
export function renderCheckpointMail(
  to: string,
  origin: string,
  { note, size }: { note: string; size: number },
): { to: string; subject: string; text: string } {
  return {
    to,
    subject: `Checkpoint of ${origin}: ${size} events`,
    text: `This is the newest signed checkpoint of the history of ${origin}. Please keep it: it can
prove later that none of these ${size} events was changed, removed or inserted, even by the operator. The lines between the rules, with a newline at the end, are the checkpoint.

----------------------------------------------------------------
${note}----------------------------------------------------------------
`,
  };
}
