import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#kernel/config.js';
import { NotFoundError } from '#kernel/errors.js';
import type { PlainWriter } from '#event-store/plain-writes.service.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { pathId } from '#http/path.js';
import { Throttle } from '#http/throttle.js';
import { Members, type ListedToken } from '#identity/members.service.js';
import { may } from '#identity/roles.js';
import { CreateToken, RevokeToken } from '#identity/token.commands.js';
import {
  ConsoleWriter,
  CurrentStore,
  CurrentUser,
  Operation,
  type EnteredStore,
  type SignedIn,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { textIn } from '#sign-in/form-text.js';
import { viewOf } from '#pages/view.js';
import { faultOf, NO_FAULT, type Fault } from './fault.js';
import { StoreTimes } from './store-times.service.js';

type ShownToken = {
  id: number;
  name: string;
  owner: string;
  isOwn: boolean;
  made: string;
  expires: string;
  expired: boolean;
  lastUsed: string;
};

type TokensView = {
  tokens: ShownToken[];
  ofEverybody: boolean;
  lifetimes: { value: string; text: string }[];
  values: { name: string; lifetime: string };
  fault: Fault;
  done: string;
};

const view = viewOf<TokensView>(import.meta.url, './views/tokens.eta');
const madeView = viewOf<{ name: string; token: string; expires: string; example: string }>(
  import.meta.url,
  './views/token-made.eta',
);

const PER_MINUTE = { default: { limit: 30, ttl: 60_000 } };
const DAY_MS = 24 * 60 * 60 * 1000;

/** In days; empty: until it is revoked. */
const LIFETIMES = [
  { value: '', text: 'Until it is revoked' },
  { value: '30', text: '30 days' },
  { value: '90', text: '90 days' },
  { value: '365', text: 'One year' },
];

const DONE = new Map([['revoked', 'The token is revoked.']]);

@Controller('app/stores/:account_id/tokens')
export class StoreTokensController {
  constructor(
    private readonly bus: CommandBus,
    private readonly members: Members,
    private readonly times: StoreTimes,
    private readonly pages: Pages,
    private readonly config: Config,
  ) {}

  @Get()
  @Operation('tokens.read')
  async show(
    @Query('done') done: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedIn,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    await this.send(request, reply, user, store, { done: DONE.get(String(done)) ?? '' });
  }

  @Post()
  @Operation('tokens.create')
  @TakesForm()
  @Throttle(PER_MINUTE)
  async create(
    @Body() form: Form,
    @ConsoleWriter() by: PlainWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedIn,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const values = { name: textIn(form, 'name'), lifetime: form['lifetime'] ?? '' };
    const expiresAt = endOf(values.lifetime);
    try {
      const made = new CreateToken(by, user.userId, values.name, expiresAt);
      const { token } = await this.bus.execute(made);
      const { day } = await this.times.of(store.id);
      const url = `${this.config.publicUrl}/api/v1/accounts/${store.id}`;
      // Not after a redirect: the token would have to be kept until then.
      await this.pages.send(request, reply, {
        view: madeView,
        title: 'Your new API token',
        data: {
          name: values.name,
          token,
          expires: expiresAt ? day(expiresAt) : '',
          example: `curl -H "Authorization: Bearer ${token}" ${url}`,
        },
        width: 'form',
      });
    } catch (error) {
      await this.send(request, reply, user, store, { values, fault: faultOf(error) });
    }
  }

  @Get(':id/revoke')
  @Operation('tokens.revoke')
  async askToRevoke(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedIn,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const listed = await this.listed(user, store);
    const token = listed.find((one) => one.id === pathId(id));
    if (!token) throw new NotFoundError('Token');
    const base = `/app/stores/${store.id}/tokens`;
    await this.pages.ask(request, reply, {
      question: 'Revoke this token?',
      about: token.name,
      text: 'Whatever uses it stops working at once. It cannot be brought back, only replaced by a new token.',
      yes: 'Revoke it',
      no: 'Keep it',
      action: `${base}/${token.id}/revoke`,
      back: base,
    });
  }

  @Post(':id/revoke')
  @Operation('tokens.revoke')
  @TakesForm()
  @Throttle(PER_MINUTE)
  async revoke(
    @Param('id') id: string,
    @ConsoleWriter() by: PlainWriter,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentUser() user: SignedIn,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const ofOthers = may(store.role, 'tokens.revoke_of_others');
    const revoker = { userId: user.userId, accountId: store.id, ofOthers };
    try {
      await this.bus.execute(new RevokeToken(by, pathId(id), revoker));
    } catch (error) {
      return this.send(request, reply, user, store, { fault: faultOf(error) });
    }
    await this.pages.redirect(reply, `/app/stores/${store.id}/tokens?done=revoked`);
  }

  private listed({ userId }: SignedIn, { id, role }: EnteredStore): Promise<ListedToken[]> {
    const ofEverybody = may(role, 'tokens.read_of_others');
    return this.members.tokensFor(id, ofEverybody ? null : userId);
  }

  private async send(
    request: FastifyRequest,
    reply: FastifyReply,
    user: SignedIn,
    store: EnteredStore,
    said: Partial<Pick<TokensView, 'done' | 'fault' | 'values'>>,
  ): Promise<void> {
    const ofEverybody = may(store.role, 'tokens.read_of_others');
    const listed = await this.listed(user, store);
    const { day, minute } = await this.times.of(store.id);
    const tokens = listed.map((token) => ({
      id: token.id,
      name: token.name,
      owner: token.ownerId === user.userId ? 'You' : token.ownerName,
      isOwn: token.ownerId === user.userId,
      made: day(token.createdAt),
      expires: token.expiresAt ? day(token.expiresAt) : 'Never',
      expired: token.expired,
      lastUsed: token.lastUsedAt ? minute(token.lastUsedAt) : 'Never',
    }));
    await this.pages.send(request, reply, {
      view,
      title: `API tokens · ${store.name}`,
      data: {
        tokens,
        ofEverybody,
        lifetimes: LIFETIMES,
        values: { name: '', lifetime: '' },
        fault: NO_FAULT,
        done: '',
        ...said,
      },
      status: said.fault ? 422 : 200,
    });
  }
}

function endOf(lifetime: string): Date | null {
  const known = LIFETIMES.some(({ value }) => value === lifetime);
  return known && lifetime !== '' ? new Date(Date.now() + Number(lifetime) * DAY_MS) : null;
}
