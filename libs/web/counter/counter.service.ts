import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { CommandBus } from '@nestjs/cqrs';
import { toString as renderQrCode } from 'qrcode';
import { Config } from '#configuration/config.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { ForbiddenError, NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { Sessions } from '#identity/sessions.service.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { pickReadableColor } from '#web/pages/colors.js';
import { getRootPath, type Colors } from '#web/pages/page.js';
import { createPlainFrame, loadView, type PageFrame } from '#web/pages/view.js';
import type { BatchResultJson } from '#loyalty/stamping/batch.dto.js';
import { BatchesService } from '#loyalty/stamping/batches.service.js';
import { ReverseCardEvent } from '#loyalty/stamping/corrections.commands.js';
import { CustomerCardsService, type CodeMatch } from '#loyalty/stamping/customer-cards.service.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import {
  createOutcome,
  createProblemOutcome,
  describeAction,
  findProblem,
  type OutcomeInput,
  type OutcomeView,
} from './counter-outcome.js';
import type { CounterOperation } from './counter-operation.js';
import type { CounterVisit } from './counter-visit.js';
import { RecentActions } from './recent-actions.service.js';

const REASON = 'Undone at the counter';

/** The fields of a result's body that the counter shows. */
type ResultBody = {
  code?: string;
  errors?: Record<string, unknown>;
  event_id?: string | null;
  redemption?: { reward_name: string };
};

/**
 * The result of an operation at the counter, as the script gets it. @property status that of the API; 409: somebody has to
 * choose first
 */
export type CounterResult = {
  external_ref: string;
  status: number;
  event_id: string | null;
  /** Of the card, for the text about a rejection. */
  name: string;
  problem: string;
  /** The name of the text among the problems; empty without one. */
  problem_code: string;
  colors: Colors | null;
  html: string;
  customer_card_id: number | null;
  is_redemption: boolean;
  /** Whether the code is that of a second card that nobody has confirmed. */
  is_second: boolean;
  /** Set where the user was not signed in on the phone at the time: somebody has to confirm it. */
  is_unattended?: true;
};

type OutcomeExtras = Pick<
  OutcomeInput,
  'headline' | 'isRedemption' | 'eventId' | 'secondCode' | 'recent' | 'qr'
>;

const NOTHING: OutcomeExtras = {
  headline: '',
  isRedemption: false,
  eventId: null,
  secondCode: null,
  recent: null,
  qr: '',
};

const NO_PROBLEM = { problem: '', problem_code: '' } as const;

const outcomeView = loadView<OutcomeView>(import.meta.url, './views/outcome.eta');

/** Stamps, redeems and undoes at the counter, by the commands of the API, and renders what staff see of it. */
@Injectable()
export class CounterService {
  private readonly root: string;

  constructor(
    private readonly commands: CommandBus,
    private readonly batches: BatchesService,
    private readonly customerCards: CustomerCardsService,
    private readonly templates: TemplatesService,
    private readonly cards: CardsService,
    private readonly recentActions: RecentActions,
    private readonly sessions: Sessions,
    private readonly config: Config,
  ) {
    this.root = getRootPath(config);
  }

  /**
   * Executes operations in one batch, except those that ask first. Results are in the order of the operations.
   * @param locationId where the counter is now; null: unknown
   */
  async execute(
    visit: CounterVisit,
    operations: CounterOperation[],
    locationId: number | null,
  ): Promise<CounterResult[]> {
    const { context } = visit;
    const unattended = await this.findUnattended(visit, operations);
    const questions = await Promise.all(
      operations.map((operation) =>
        unattended.has(operation)
          ? createUnattendedResult(operation)
          : this.findQuestion(visit, operation),
      ),
    );
    const due = operations.filter((_, i) => questions[i] === undefined);
    const inputs = due.map(({ asks: _asks, is_confirmed: _is, session_id: _id, ...input }) => ({
      ...input,
      location_id: locationId,
    }));
    const done = inputs.length === 0 ? [] : await this.executeBatch(context, inputs);
    return Promise.all(
      operations.map((operation, i) => {
        const question = questions[i];
        if (question) return question;
        const { status, body } = done[due.indexOf(operation)] ?? { status: 503, body: {} };
        return this.describe(visit, operation, { status, body: body as ResultBody });
      }),
    );
  }

  /** Executes a batch. What the location was just removed for counts without one: its receipt number is still unused. */
  private async executeBatch(
    context: CommandContext,
    inputs: { location_id: number | null }[],
  ): Promise<BatchResultJson[]> {
    const results = await this.batches.execute(context, inputs, 'app_scan');
    const rejected = results.flatMap(({ status, body }, i) =>
      status === 422 && (body as ResultBody).errors?.['location_id'] ? [i] : [],
    );
    if (rejected.length === 0) return results;
    const again = rejected.map((i) => ({ ...inputs[i], location_id: null }));
    const repeated = await this.batches.execute(context, again, 'app_scan');
    return results.map((result, i) => repeated[rejected.indexOf(i)] ?? result);
  }

  /**
   * Undoes a stamping or a redemption. Undoing it again does nothing.
   * @returns why it was refused, or an empty text
   */
  async undo(
    { context, user, localization }: CounterVisit,
    cardId: number,
    eventId: string,
  ): Promise<string> {
    try {
      const path = await this.customerCards.getPath(context.accountId, cardId);
      const staffId = user.isManager ? undefined : user.id;
      await this.commands.execute(new ReverseCardEvent(context, path, eventId, REASON, staffId));
      return '';
    } catch (error) {
      const { problems } = localization.t.counter;
      if (error instanceof ForbiddenError) return problems.tooLate;
      if (error instanceof NotFoundError) return problems.invalid;
      if (!(error instanceof RejectedError)) throw error;
      if (error.code === 'insufficient_stamps') return problems.spent;
      const action = await this.recentActions.findAction(context.accountId, cardId, eventId);
      if (action?.isReversed) return '';
      return problems[findProblem({ status: 422, code: error.code }, true)];
    }
  }

  /** Renders a card as it is now. @throws NotFoundError */
  async show(
    visit: CounterVisit,
    cardId: number,
    extras: Partial<OutcomeExtras> = {},
  ): Promise<{ view: OutcomeView; colors: Colors; name: string; html: string }> {
    const { accountId } = visit.context;
    const path = await this.customerCards.getPath(accountId, cardId);
    const card = await this.customerCards.get(accountId, path);
    const [template, look, names] = await Promise.all([
      this.templates.get(accountId, card.card_id),
      this.cards.get(accountId, card.card_id),
      this.recentActions.findNames(accountId, [path.id], visit.localization),
    ]);
    const name = names.get(path.id)?.name ?? '';
    const { card_color: ground, text_color: text } = look;
    const colors = { ground, text: pickReadableColor(ground, text) };
    const view = createOutcome(
      {
        path: visit.path,
        card,
        template,
        name,
        close: visit.close,
        createReceipt,
        isOnlyLocal: this.config.isOnlyLocal,
        ...NOTHING,
        ...extras,
      },
      visit.localization,
    );
    return {
      view,
      colors,
      name,
      html: outcomeView(view, this.createFrame(visit)),
    };
  }

  /** Checks that a code is that of a second card which leads to this card, and which nobody has confirmed. */
  async findSecondCode(accountId: number, cardId: number, code: unknown): Promise<string | null> {
    if (typeof code !== 'string') return null;
    const match = await this.findPathByCode(accountId, code);
    return match?.decoy === 'unconfirmed' && match.id === cardId ? code : null;
  }

  /** Renders the QR code of a card's link as the address of a picture. */
  async renderQrCode(accountId: number, cardId: number): Promise<string> {
    const path = await this.customerCards.getPath(accountId, cardId);
    const { uuid } = await this.customerCards.get(accountId, path);
    const svg = await renderQrCode(`${this.config.publicUrl}/passes/${uuid}`, {
      type: 'svg',
      margin: 2,
    });
    return `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`;
  }

  /** Finds what was done on the phone while the user was not signed in: after the session had ended, unknown to the phone. */
  private async findUnattended(
    { user }: CounterVisit,
    operations: readonly CounterOperation[],
  ): Promise<ReadonlySet<CounterOperation>> {
    const claims = operations.flatMap((operation) => {
      const { session_id: sessionId, occurred_at: at, is_confirmed } = operation;
      if (sessionId === undefined || at === undefined || is_confirmed) return [];
      return [{ operation, sessionId, at }];
    });
    if (claims.length === 0) return new Set();
    const present = await this.sessions.findPresent(
      { userId: user.id, sessionId: user.sessionId },
      claims,
    );
    return new Set(claims.filter((_, i) => !present[i]).map(({ operation }) => operation));
  }

  private async findQuestion(
    visit: CounterVisit,
    operation: CounterOperation,
  ): Promise<CounterResult | undefined> {
    if (!operation.asks || operation.operation !== 'stamp') return undefined;
    const path = await this.findPath(visit, operation);
    const recent =
      path && (await this.recentActions.findStamping(visit, path.id, operation.external_ref));
    if (!path || !recent) return undefined;
    const secondCode = findUnconfirmedCode(path, operation);
    const { html, colors, name } = await this.show(visit, path.id, { recent, secondCode });
    return {
      external_ref: operation.external_ref,
      status: 409,
      event_id: null,
      name,
      ...NO_PROBLEM,
      colors,
      html,
      customer_card_id: path.id,
      is_redemption: false,
      is_second: secondCode !== null,
    };
  }

  private async describe(
    visit: CounterVisit,
    operation: CounterOperation,
    { status, body }: { status: number; body: ResultBody },
  ): Promise<CounterResult> {
    const { external_ref } = operation;
    const { t } = visit.localization;
    const path = await this.findPath(visit, operation);
    const problem_code =
      status === 200 ? '' : findProblem({ status, code: body.code ?? '' }, path !== undefined);
    const problem = problem_code === '' ? '' : t.counter.problems[problem_code];
    const is_redemption = operation.operation === 'redeem';
    if (!path) {
      const code = problem_code === 'unknown' ? (operation.code ?? '') : '';
      const view = createProblemOutcome(visit, problem, code.trim().toUpperCase());
      const html = outcomeView(view, this.createFrame(visit));
      const nothing = { event_id: null, name: '', colors: null, customer_card_id: null };
      const result = { external_ref, status, problem, problem_code, html, ...nothing };
      return { ...result, is_redemption, is_second: false };
    }
    const eventId = body.event_id ?? null;
    const action = {
      stamps: operation.stamps ?? 1,
      reward: body.redemption?.reward_name ?? null,
      isReversed: false,
    };
    const secondCode = findUnconfirmedCode(path, operation);
    const extras = { ...(status === 200 && describeAction(action, t)), eventId, secondCode };
    const { view, colors, name } = await this.show(visit, path.id, extras);
    const html = outcomeView({ ...view, problem }, this.createFrame(visit));
    return {
      external_ref,
      status,
      event_id: eventId,
      name,
      problem,
      problem_code,
      colors,
      html,
      customer_card_id: path.id,
      is_redemption,
      is_second: secondCode !== null,
    };
  }

  private async findPath(
    { context: { accountId } }: CounterVisit,
    { code, customer_card_id }: CounterOperation,
  ): Promise<CodeMatch | undefined> {
    if (customer_card_id === undefined) return this.findPathByCode(accountId, code ?? '');
    return ignoreNotFound(async () => ({
      ...(await this.customerCards.getPath(accountId, customer_card_id)),
      decoy: null,
    }));
  }

  private findPathByCode(accountId: number, code: string): Promise<CodeMatch | undefined> {
    return ignoreNotFound(async () => {
      const { id, decoy } = await this.customerCards.getPathByCode(accountId, code);
      return { ...(await this.customerCards.getPath(accountId, id)), decoy };
    });
  }

  private createFrame({ user, localization: { locale } }: CounterVisit): PageFrame {
    return { ...createPlainFrame(this.root, locale), csrf: user.csrf };
  }
}

/** Finds the code of a second card that nobody has confirmed. */
function findUnconfirmedCode({ decoy }: CodeMatch, { code }: CounterOperation): string | null {
  return decoy === 'unconfirmed' ? (code ?? null) : null;
}

function createUnattendedResult({ external_ref }: CounterOperation): CounterResult {
  return {
    external_ref,
    status: 409,
    event_id: null,
    name: '',
    ...NO_PROBLEM,
    colors: null,
    html: '',
    customer_card_id: null,
    is_redemption: false,
    is_second: false,
    is_unattended: true,
  };
}

/** Creates a receipt number, which makes a form count once however often it is sent. */
export function createReceipt(): string {
  return `counter-${randomUUID()}`;
}

async function ignoreNotFound<R>(find: () => Promise<R>): Promise<R | undefined> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
