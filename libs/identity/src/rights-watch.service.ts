import type { ProcessLink } from '#database/process-link.js';

export const IDENTITY_CHANNEL = 'inkpad_identity';

/** Trusts a poll for so long that, with the poll, the request and a busy moment, a change counts within a second. */
const CURRENT_FOR_MS = 800;

/**
 * Tells whether cached users, memberships and tokens are current. A notification clears the cache within moments of a
 * change. Since one may get lost, each poll reads a version that every change raises. Without a recent poll the cache is
 * not used.
 */
export class RightsWatch {
  private version: number | undefined;
  /** When the last successful poll was sent, by `performance.now()`. */
  private polledAt = -Infinity;

  /** @param onChange drops everything that is cached; also called when nothing has changed */
  constructor(
    private readonly link: ProcessLink,
    private readonly onChange: () => void,
  ) {}

  async start(): Promise<void> {
    this.link.listen(IDENTITY_CHANNEL, this.onChange, this.onChange);
    this.link.join<{ rights_version: number }>({
      columns: '(select version from rights_version) as rights_version',
      receive: ({ rights_version: version }, { sentAt }) => {
        if (version !== this.version) this.onChange();
        this.version = version;
        this.polledAt = sentAt;
      },
    });
    await this.link.poll();
  }

  /** Tells whether the cache can be trusted. False: query the database. */
  isCurrent(): boolean {
    return performance.now() - this.polledAt < CURRENT_FOR_MS;
  }
}
