import { Body, Controller, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Form } from '#platform/http/body-kinds.js';
import { CounterPins } from '#identity/counter-pins.service.js';
import {
  CurrentUser,
  type ConsoleRequest,
  type SignedInUser,
  GetPage,
  PostRepeatableForm,
} from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { SessionCookies } from '#web/sign-in/session-cookies.service.js';
import { type PageResult, redirectTo } from '#web/pages/page-results.js';
import { readId } from './counter-operation.js';
import type { CounterVisit } from './counter-visit.js';
import { PEOPLE_SCRIPTS } from './counter-page.js';
import { AtCounter, CounterPages } from './counter-pages.service.js';

type PeopleView = {
  path: string;
  people: { id: number; label: string }[];
  chosen: number;
  error: string;
  /** Whether the session reaches the page of the account, where a PIN is set. */
  hasAccount: boolean;
};

const peopleView = loadView<PeopleView>(import.meta.url, './views/people.eta');

/** Per IP address. Few, because each attempt may guess a PIN. */
const PER_ADDRESS = 30;

/** Lets the members of a store take turns at one phone (ADR-0139). */
@Controller('counter/:account_id/people')
export class CounterPeopleController {
  constructor(
    private readonly pins: CounterPins,
    private readonly sessionCookies: SessionCookies,
    private readonly counterPages: CounterPages,
  ) {}

  @GetPage('counter.use')
  async show(
    @AtCounter() visit: CounterVisit,
    @Req() request: FastifyRequest,
  ): Promise<PageResult> {
    return this.showPeople(visit, request, { chosen: 0, error: '' });
  }

  @PostRepeatableForm('counter.use', '', PER_ADDRESS)
  async change(
    @AtCounter() visit: CounterVisit,
    @CurrentUser() present: SignedInUser,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const { people } = visit.localization.t.counter;
    const userId = readId(form['user_id']);
    if (userId === 0) {
      const refused = { chosen: 0, error: people.choose };
      return this.showPeople(visit, request, refused);
    }
    const outcome = await this.pins.takeOver(this.sessionCookies.readVisitor(request), present, {
      accountId: visit.context.accountId,
      userId,
      pin: form['pin'] ?? '',
    });
    // The guard leads to the sign-in.
    if (outcome.kind === 'ended') return redirectTo(visit.path);
    if (outcome.kind !== 'in') {
      const error = outcome.kind === 'locked' ? people.locked : people.wrong;
      return this.showPeople(visit, request, { chosen: userId, error });
    }
    this.sessionCookies.setSession(reply, outcome.session);
    return redirectTo(visit.path);
  }

  private async showPeople(
    { context, user, path, localization: { t } }: CounterVisit,
    request: FastifyRequest,
    { chosen, error }: { chosen: number; error: string },
  ): Promise<PageResult> {
    const members = await this.pins.listMembers(context.accountId);
    return this.counterPages.show(request, {
      title: t.counter.people.title,
      status: error === '' ? 200 : 422,
      view: peopleView,
      scripts: PEOPLE_SCRIPTS,
      data: {
        path,
        people: members
          .filter(({ id, hasPin }) => hasPin && id !== user.id)
          .map(({ id, name }) => ({ id, label: name })),
        chosen,
        error,
        hasAccount: (request as ConsoleRequest).signedIn?.counterAccountId === null,
      },
      back: path,
    });
  }
}
