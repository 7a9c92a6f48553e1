import { Injectable } from '@nestjs/common';
import { CommandBus, type Command } from '@nestjs/cqrs';
import type { FastifyInstance } from 'fastify';
import { createHash } from 'node:crypto';
import type { KeyedRequest } from '#platform/kernel/aggregate.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import { StoredResponses } from '#platform/event-store/commands/stored-responses.js';
import { uploadedFiles, type Form } from '#platform/http/body-kinds.js';
import type { RequestSubjects } from '#platform/http/idempotency.js';
import type { ConsoleRequest, ConsoleRoute } from './current-user.js';
import { KeptFormError } from './kept-form.js';
import { localizeRequest } from './localize.js';
import { PageError } from './page-error.js';

/** What differs between two clicks: a session that was renewed, and a password that is never stored. */
const IGNORED_FIELDS = new Set(['_csrf', 'current_password']);

/** @property isKept whether the form is only shown again, after its user has signed in */
type KeyedForm = KeyedRequest & { isKept?: boolean };

/** The author of a change, whose `keyed` is the key of the form. */
type Writer = { keyed?: KeyedForm };

/** A result that JSON does not change: the second request gets it from there. */
type Storable<R> = { [K in keyof R]: JsonValue<R[K]> };
type JsonValue<T> = unknown extends T
  ? T
  : T extends Date
    ? never
    : { [K in keyof T]: JsonValue<T[K]> };

type FormCommand<R> = Command<R> & ({ context: Writer } | { by: Writer });

/**
 * Executes the commands of a form once, however often it is sent: a button was pressed twice, or the page was reloaded.
 * A second request gets the result of the first. Uses the stored responses of the API's Idempotency-Key, so that the
 * result is written in the commit it reports (ADR-0113).
 */
@Injectable()
export class FormCommands {
  constructor(
    private readonly bus: CommandBus,
    private readonly responses: StoredResponses,
  ) {}

  /**
   * Gives requests a key, from which the keys of their commands come. It depends on all fields: a form whose fields were
   * changed is another request. Call it before the first route is registered.
   */
  install(server: FastifyInstance, subjects: RequestSubjects): void {
    server.addHook('onRoute', (route) => {
      if (!(route.config as ConsoleRoute | undefined)?.isExecutedOnce) return;
      route.preHandler = [
        ...[route.preHandler ?? []].flat(),
        async (request) => this.addKey(request as ConsoleRequest, subjects),
      ];
    });
  }

  /**
   * Executes a command, or returns its stored result.
   * @param step tells commands of one form apart that have the same class
   * @param check throws what the command would not; a form that is sent again after the command does not meet it
   */
  execute<R extends Storable<R>>(
    command: FormCommand<R>,
    step = '',
    check: () => void | Promise<void> = () => undefined,
  ): Promise<R> {
    const name = 'context' in command ? 'context' : 'by';
    const writer = 'context' in command ? command.context : command.by;
    return this.executeStep(writer, `${command.constructor.name} ${step}`, async (keyedWriter) => {
      await check();
      return this.bus.execute(Object.assign(command, { [name]: keyedWriter }));
    });
  }

  /**
   * Executes a function once.
   * @param execute passes its argument on, so that the result is written in the same transaction
   * @throws InProgressError when the first one takes too long
   * @throws KeptFormError
   */
  async executeStep<W extends Writer, R extends Storable<R>>(
    writer: W,
    step: string,
    execute: (writer: W) => Promise<R>,
  ): Promise<R> {
    const { keyed: form } = writer;
    if (!form) return execute(writer);
    if (form.isKept) throw new KeptFormError();
    const keyed: KeyedRequest = {
      key: this.responses.fingerprint('step', form.key.toString('hex'), step),
      holder: createId(),
      status: 200,
      isStored: false,
      subjectId: form.subjectId,
    };
    const result = await this.responses.executeKeyed(keyed, () => execute({ ...writer, keyed }));
    if (!result) throw new NotFoundError('Customer');
    return result.body;
  }

  /** @throws PageError without the key of the form, which stands beside the CSRF token in each form */
  private addKey(request: ConsoleRequest, subjects: RequestSubjects): void {
    const form = (request.body ?? {}) as Form;
    if (!form['form_key']) {
      const { errors } = localizeRequest(request).t.console;
      throw new PageError(403, errors.expired, errors.expiredWhy);
    }
    const files = uploadedFiles.get(request) ?? new Map<string, Buffer>();
    const fields = [
      ...Object.entries(form).filter(([name]) => !IGNORED_FIELDS.has(name)),
      ...[...files].map(([name, bytes]) => [
        name,
        createHash('sha256').update(bytes).digest('hex'),
      ]),
    ].sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
    const { userId } = request.signedIn ?? {};
    const keyed: KeyedForm = {
      isKept: request.keptForm !== undefined,
      key: this.responses.fingerprint('form', userId ?? 0, request.url, JSON.stringify(fields)),
      holder: '',
      status: 200,
      isStored: false,
      subjectId: subjects.find(request.params as object, request.routeOptions.url ?? ''),
    };
    request.keyed = keyed;
  }
}
