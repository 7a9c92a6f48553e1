import { Body, Controller, Get, Param, Post, Query, Req } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyRequest } from 'fastify';
import { getNow } from '#platform/kernel/clock.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { CountsElements, Throttle } from '#platform/http/throttle.js';
import {
  CurrentStore,
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
  GetPage,
  PostRepeatableForm,
} from '#web/pages/current-user.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { Stores } from '#web/sign-in/stores.service.js';
import { ConfirmDecoyCard } from '#loyalty/stamping/decoy-confirmation.commands.js';
import { type PageResult, redirectTo, showJson } from '#web/pages/page-results.js';
import { localizeRequest } from '#web/pages/localize.js';
import { createProblemOutcome, describeAction, type OutcomeView } from './counter-outcome.js';
import { DECODER_PATHS } from './counter-files.controller.js';
import {
  MAX_OPERATIONS,
  readFormOperation,
  readId,
  readOperations,
  type CounterOperation,
} from './counter-operation.js';
import { SCANNER_SCRIPTS, SHELL_PATHS, type CounterPage } from './counter-page.js';
import { CounterLocations } from './counter-locations.service.js';
import { CounterService, createReceipt, type CounterResult } from './counter.service.js';
import type { CounterVisit } from './counter-visit.js';
import { RecentActions, type RecentLine } from './recent-actions.service.js';
import { createScannerTexts } from './scanner-texts.js';
import { AtCounter, CounterPages, isScript } from './counter-pages.service.js';

type ScannerView = {
  store: string;
  storeId: number;
  path: string;
  hasConsole: boolean;
  /** What leads to the choice of a location; empty: there is none to choose. */
  location: string;
  receipt: string;
  code: string;
  problem: string;
};

const scannerView = loadView<ScannerView>(import.meta.url, './views/scanner.eta');
const storesView = loadView<{ stores: EnteredStore[] }>(import.meta.url, './views/stores.eta');
const outcomeView = loadView<OutcomeView>(import.meta.url, './views/outcome.eta');
const recentView = loadView<{
  path: string;
  lines: RecentLine[];
  flash: string;
  isManager: boolean;
}>(import.meta.url, './views/recent.eta');

/** Per IP address, which all counters of a shop share. */
const PER_ADDRESS = 1_200;
const EVENT_ID = /^evt_[0-9A-Z]{26}$/;

/** Serves the scanner, and what it does: each of its forms works without a script too. */
@Controller()
export class CounterController {
  constructor(
    private readonly counter: CounterService,
    private readonly recentActions: RecentActions,
    private readonly commands: CommandBus,
    private readonly stores: Stores,
    private readonly counterPages: CounterPages,
    private readonly counterLocations: CounterLocations,
  ) {}

  /** Leads from the menu of the console to the counter. */
  @GetPage('counter.use', 'app/stores/:account_id/counter')
  leadToCounter(@CurrentStore() { id }: EnteredStore): PageResult {
    return redirectTo(`/counter/${id}`);
  }

  @Get('counter')
  @Throttle(PER_ADDRESS)
  async choose(
    @CurrentUser() { userId, counterAccountId }: SignedInUser,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const all = await this.stores.listForUser(userId);
    const stores = all.filter(({ id }) => counterAccountId === null || id === counterAccountId);
    const [only] = stores;
    if (only && stores.length === 1) return redirectTo(`/counter/${only.id}`);
    const { t } = localizeRequest(request);
    return this.counterPages.show(request, {
      title: t.counter.title,
      view: storesView,
      data: { stores },
    });
  }

  @GetPage('counter.use', 'counter/:account_id')
  @Throttle(PER_ADDRESS)
  async show(
    @AtCounter() visit: CounterVisit,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    return this.showScanner(request, { visit, store, user });
  }

  /** Sends the page that browsers keep for when there is no connection: without a name, an id or a token (ADR-0139). */
  @GetPage('counter.use', 'counter/:account_id/offline')
  @Throttle(PER_ADDRESS)
  async showOffline(
    @AtCounter() visit: CounterVisit,
    @CurrentStore() store: EnteredStore,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    return this.showScanner(request, { visit, store, user: null });
  }

  /** Says who is signed in, for a page that was loaded earlier or without a connection. */
  @GetPage('counter.use', 'counter/:account_id/state')
  @Throttle(PER_ADDRESS)
  showState(@CurrentUser() { userId, sessionId, csrfToken }: SignedInUser): PageResult {
    return showJson({ user_id: userId, session_id: sessionId, csrf: csrfToken });
  }

  /** Executes what the script of the scanner has collected, each operation once by its receipt number. */
  @Post('counter/:account_id/batch')
  @RequiresOperation('executeBatch')
  @Throttle(PER_ADDRESS)
  @CountsElements('operations', MAX_OPERATIONS)
  async executeBatch(
    @AtCounter() visit: CounterVisit,
    @Body() body: unknown,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const operations = readOperations(body, getNow());
    const results: CounterResult[] = operations
      ? await this.execute({ ...visit, close: '' }, request, operations)
      : [];
    return showJson({ results }, operations ? 200 : 422);
  }

  @PostRepeatableForm('stampByCode', 'counter/:account_id/stamp', PER_ADDRESS)
  async stamp(
    @AtCounter() visit: CounterVisit,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Body() form: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const operation = readFormOperation('stamp', form, createReceipt);
    const [result] = await this.execute(visit, request, [operation]);
    if (!result) throw new Error('an operation has a result');
    if (result.customer_card_id === null) {
      const code = (form['code'] ?? '').trim();
      const { unknown, unknownWhy } = visit.localization.t.counter.outcome;
      const problem =
        result.problem_code === 'unknown' && code !== ''
          ? `${unknown({ code })} ${unknownWhy}`
          : result.problem;
      const rejection = { problem, code };
      return this.showScanner(request, { visit, store, user }, rejection);
    }
    return this.leadToCard(visit, result, form['code']);
  }

  @PostRepeatableForm('redeemByCode', 'counter/:account_id/redeem', PER_ADDRESS)
  async redeem(
    @AtCounter() visit: CounterVisit,
    @Body() form: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const operation = readFormOperation('redeem', form, createReceipt);
    const [result] = await this.execute(visit, request, [operation]);
    if (!result) throw new Error('an operation has a result');
    if (result.customer_card_id === null) {
      return this.showProblem(visit, request, 404, result.problem);
    }
    return this.leadToCard(visit, result);
  }

  @PostRepeatableForm('reverseCardEvent', 'counter/:account_id/undo', PER_ADDRESS)
  async undo(
    @AtCounter() visit: CounterVisit,
    @Body() form: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const cardId = readId(form['customer_card_id']);
    const problem = await this.counter.undo(visit, cardId, form['event_id'] ?? '');
    const { t } = visit.localization;
    if (isScript(request)) {
      const headline = problem === '' ? t.counter.outcome.undone : '';
      const status = problem === '' ? 200 : 422;
      return this.showOutcome(visit, cardId, { headline, problem, status });
    }
    if (problem !== '') return this.showProblem(visit, request, 422, problem);
    return redirectTo(
      form['from'] === 'recent'
        ? `${visit.path}/recent?done=undone`
        : `${visit.path}/cards/${cardId}?event=${form['event_id'] ?? ''}`,
    );
  }

  /** Confirms that whoever shows a second card is its customer. */
  @PostRepeatableForm('confirmCustomerCardByCode', 'counter/:account_id/confirm', PER_ADDRESS)
  async confirm(
    @AtCounter() visit: CounterVisit,
    @Body() form: Form,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const cardId = readId(form['customer_card_id']);
    await this.commands.execute(new ConfirmDecoyCard(visit.context, form['code'] ?? ''));
    if (isScript(request)) {
      const headline = visit.localization.t.counter.outcome.confirmed;
      return this.showOutcome(visit, cardId, { headline, problem: '', status: 200 });
    }
    return redirectTo(`${visit.path}/cards/${cardId}?done=confirmed`);
  }

  @GetPage('getCustomerCard', 'counter/:account_id/cards/:id')
  @Throttle(PER_ADDRESS)
  async showCard(
    @AtCounter() visit: CounterVisit,
    @Param('id') id: string,
    @Query() query: Record<string, unknown>,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const { context, path, localization } = visit;
    const { outcome, problems } = localization.t.counter;
    const cardId = parsePathId(id);
    const { done, event, second, problem } = query;
    const eventId = typeof event === 'string' && EVENT_ID.test(event) ? event : null;
    const action = eventId
      ? await this.recentActions.findAction(context.accountId, cardId, eventId)
      : undefined;
    const headlines = { confirmed: outcome.confirmed, new: outcome.enrolled };
    const { view, colors, name } = await this.counter.show(visit, cardId, {
      ...(action
        ? describeAction(action, localization.t)
        : { headline: findFlashMessage(done, headlines) }),
      eventId: action?.isReversed === false ? eventId : null,
      secondCode: await this.counter.findSecondCode(context.accountId, cardId, second),
      recent: done === 'ask' ? await this.recentActions.findStamping(visit, cardId, '') : null,
      qr: done === 'new' ? await this.counter.renderQrCode(context.accountId, cardId) : '',
    });
    const text = findFlashMessage(problem, problems);
    return this.counterPages.show(request, {
      title: name,
      view: outcomeView,
      data: { ...view, problem: text },
      look: 'card',
      colors,
      back: path,
    });
  }

  @GetPage('counter.use', 'counter/:account_id/recent')
  @Throttle(PER_ADDRESS)
  async showRecent(
    @AtCounter() visit: CounterVisit,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    const { t } = visit.localization;
    return this.counterPages.show(request, {
      title: t.counter.recent.title,
      view: recentView,
      data: {
        path: visit.path,
        lines: await this.recentActions.list(visit),
        flash: findFlashMessage(done, { undone: t.counter.outcome.undone }),
        isManager: visit.user.isManager,
      },
      back: visit.path,
    });
  }

  private async execute(
    visit: CounterVisit,
    request: FastifyRequest,
    operations: CounterOperation[],
  ): Promise<CounterResult[]> {
    const { current } = await this.counterLocations.find(request, visit.context.accountId);
    return this.counter.execute(visit, operations, current?.id ?? null);
  }

  /** Redirects to the card, so that reloading the page does not send the form again. */
  private leadToCard({ path }: CounterVisit, result: CounterResult, code?: string): PageResult {
    const query = new URLSearchParams();
    if (result.status === 409) query.set('done', 'ask');
    else if (result.status !== 200) query.set('problem', result.problem_code);
    else if (result.event_id !== null) query.set('event', result.event_id);
    if (result.is_second && code !== undefined) query.set('second', code.trim());
    return redirectTo(`${path}/cards/${result.customer_card_id}?${query.toString()}`);
  }

  /** Shows an outcome to the script. @property status as in a batch: the response itself is 200 */
  private async showOutcome(
    visit: CounterVisit,
    cardId: number,
    { headline, problem, status }: { headline: string; problem: string; status: number },
  ): Promise<PageResult> {
    const { html, colors } = await this.counter.show({ ...visit, close: '' }, cardId, {
      headline: headline || problem,
    });
    return showJson({ status, html, colors });
  }

  private showProblem(
    { path, localization, close }: CounterVisit,
    request: FastifyRequest,
    status: number,
    problem: string,
  ): PageResult {
    return this.counterPages.show(request, {
      status,
      title: localization.t.counter.problems.title,
      view: outcomeView,
      data: createProblemOutcome({ path, close }, problem),
      back: path,
    });
  }

  private async showScanner(
    request: FastifyRequest,
    { visit, store, user }: { visit: CounterVisit; store: EnteredStore; user: SignedInUser | null },
    { problem, code } = { problem: '', code: '' },
  ): Promise<PageResult> {
    const { path, localization } = visit;
    const { current, hasChoice } = await this.counterLocations.find(request, store.id);
    const { t, locale } = localization;
    const page: CounterPage<ScannerView> & { status: number } = {
      title: `${t.counter.title} · ${store.name}`,
      view: scannerView,
      look: 'scanner',
      scripts: SCANNER_SCRIPTS,
      status: problem === '' ? 200 : 422,
      data: {
        store: store.name,
        storeId: store.id,
        path,
        hasConsole: user !== null && user.counterAccountId === null,
        location: user !== null && hasChoice ? (current?.name ?? t.counter.location.title) : '',
        receipt: createReceipt(),
        code,
        problem,
      },
      config: {
        path: this.counterPages.root + path,
        offline: `${this.counterPages.root}${path}/offline`,
        worker: `${this.counterPages.root}/counter/worker.js`,
        scope: `${this.counterPages.root}/counter`,
        shell: SHELL_PATHS.map((path) => this.counterPages.root + path),
        decoder: {
          script: this.counterPages.root + DECODER_PATHS.script,
          wasm: this.counterPages.root + DECODER_PATHS.wasm,
        },
        accountId: store.id,
        // Nobody, on the page that browsers keep.
        session: user && { user_id: user.userId, session_id: user.sessionId },
        csrf: user?.csrfToken ?? '',
        locale,
        texts: createScannerTexts(localization),
      },
    };
    return this.counterPages.show(request, page, user === null);
  }
}
