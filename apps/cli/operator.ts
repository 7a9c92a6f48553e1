import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';

/** Identifies the operating-system user of this program for the history and the audit log. */
/** The first user of `npm start`, who owns the café of the demo too. */
export const LOCAL_OWNER = 'owner@inkpad.local';

export function getOperator(): AuditedWriter {
  return {
    actor: { type: 'system', id: 0, name: getUserName() },
    channel: 'cli',
    requestId: randomUUID(),
  };
}

/** Containers often run as a number without a name. */
function getUserName(): string {
  try {
    const { uid, username } = userInfo();
    // Root could write anything anyway; nobody else is to name another one.
    const { SUDO_USER } = process.env;
    return uid === 0 && SUDO_USER ? `${SUDO_USER} as ${username}` : username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
