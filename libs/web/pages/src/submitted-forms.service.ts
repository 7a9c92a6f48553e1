import { Injectable } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import type { KeyedRequest } from '#kernel/aggregate.js';
import { InProgressError, NotFoundError } from '#kernel/errors.js';
import { createId } from '#kernel/randomness.js';
import { StoredResponses } from '#event-store/commands/stored-responses.js';
import type { Form } from '#http/body-kinds.js';

const WAIT_MS = 10_000;
const POLL_MS = 100;

/** Describes a form that a user sent. @property subjectId the customer whom its result is about */
export type SubmittedForm = { userId: number; action: string; form: Form; subjectId?: number };

/**
 * Executes what a form asks for once, however often it is sent: a button was pressed twice, or the page was reloaded.
 * Uses the stored responses of the API's Idempotency-Key, so that the result is written in the commit it reports.
 */
@Injectable()
export class SubmittedForms {
  constructor(private readonly responses: StoredResponses) {}

  /** Creates the value of a form's hidden field `receipt`. */
  createReceipt(): string {
    return createId();
  }

  /**
   * Executes the request of a form, or returns the result of the same form from before. A form whose fields were changed
   * is another request.
   * @param execute passes its argument on to a command as `keyed`
   * @throws InProgressError when the first one takes too long
   */
  async executeOnce<R>(
    { userId, action, form, subjectId }: SubmittedForm,
    execute: (keyed: KeyedRequest) => Promise<R>,
  ): Promise<R> {
    const fields = JSON.stringify(
      Object.entries(form)
        .filter(([name]) => name !== '_csrf' && name !== 'current_password')
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    );
    const keyed: KeyedRequest = {
      key: this.responses.fingerprint('form', userId, action, fields),
      holder: createId(),
      status: 200,
      isStored: false,
      subjectId,
    };
    const stored = await this.claim(keyed);
    if (stored) return stored.body as R;
    let result: R;
    try {
      result = await execute(keyed);
    } catch (error) {
      await this.responses.release(keyed);
      throw error;
    }
    if (!keyed.isStored) await this.responses.save(keyed, { status: keyed.status, body: result });
    return result;
  }

  /** Claims the key, and waits while another request holds it. @returns the stored response, if there is one */
  private async claim(keyed: KeyedRequest): Promise<{ body: unknown } | undefined> {
    const deadline = performance.now() + WAIT_MS;
    const request = this.responses.fingerprint('form');
    for (;;) {
      const reservation = await this.responses.claimKey(keyed, request);
      if (reservation.state === 'ours') return undefined;
      if (reservation.state === 'done') return { body: reservation.body };
      if (reservation.state === 'erased') throw new NotFoundError('Customer');
      if (performance.now() > deadline) throw new InProgressError();
      await wait(POLL_MS);
    }
  }
}
