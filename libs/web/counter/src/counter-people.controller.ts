import { Body, Controller, Get, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { Throttle } from '#http/throttle.js';
import { CounterPins } from '#identity/counter-pins.service.js';
import {
  CurrentUser,
  RequiresOperation,
  type ConsoleRequest,
  type SignedInUser,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { SessionCookies } from '#sign-in/session-cookies.service.js';
import { readId } from './counter-operation.js';
import type { CounterVisit } from './counter-visit.js';
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

/** Lets the members of a store take turns at one phone (ADR-0111). */
@Controller('counter/:account_id/people')
export class CounterPeopleController {
  constructor(
    private readonly pins: CounterPins,
    private readonly sessionCookies: SessionCookies,
    private readonly pages: Pages,
    private readonly counterPages: CounterPages,
  ) {}

  @Get()
  @RequiresOperation('counter.use')
  async show(
    @AtCounter() visit: CounterVisit,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.sendPeople(visit, request, reply, { chosen: 0, error: '' });
  }

  @Post()
  @TakesForm()
  @RequiresOperation('counter.use')
  @Throttle(PER_ADDRESS)
  async change(
    @AtCounter() visit: CounterVisit,
    @CurrentUser() present: SignedInUser,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { people } = visit.localization.t.counter;
    const userId = readId(form['user_id']);
    if (userId === 0) {
      const refused = { chosen: 0, error: people.choose };
      return this.sendPeople(visit, request, reply.status(422), refused);
    }
    const outcome = await this.pins.takeOver(this.sessionCookies.readVisitor(request), present, {
      accountId: visit.context.accountId,
      userId,
      pin: form['pin'] ?? '',
    });
    // The guard leads to the sign-in.
    if (outcome.kind === 'ended') return this.pages.redirect(reply, visit.path);
    if (outcome.kind !== 'in') {
      const error = outcome.kind === 'locked' ? people.locked : people.wrong;
      return this.sendPeople(visit, request, reply.status(422), { chosen: userId, error });
    }
    this.sessionCookies.setSession(reply, outcome.session);
    await this.pages.redirect(reply, visit.path);
  }

  private async sendPeople(
    { context, user, path, localization: { t } }: CounterVisit,
    request: FastifyRequest,
    reply: FastifyReply,
    { chosen, error }: { chosen: number; error: string },
  ): Promise<void> {
    const members = await this.pins.listMembers(context.accountId);
    await this.counterPages.send(request, reply, {
      title: t.counter.people.title,
      view: peopleView,
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
