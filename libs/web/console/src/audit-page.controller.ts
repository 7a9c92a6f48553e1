import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Actor } from '#kernel/aggregate.js';
import { ActorNames } from '#history/actor-names.service.js';
import type { AuditEntryJson } from '#history/audit-entry.dto.js';
import { AuditService } from '#history/audit.service.js';
import { Members } from '#identity/members.service.js';
import { CurrentStore, Operation, type EnteredStore } from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { getAuditLabel, describeChanges, describeDetails, describeActor } from './audit-labels.js';
import { StoreTimes } from './store-times.service.js';

type AuditView = {
  entries: {
    at: string;
    who: string;
    from: string;
    what: string;
    about: string;
    details: string;
    changes: string[];
  }[];
  /** The number of the last entry shown, when there are more. */
  next: number | null;
  isFirst: boolean;
};

const view = loadView<AuditView>(import.meta.url, './views/audit.eta');

const PAGE_SIZE = 50;
const NO_FILTER = { type: null, actor: null, from: null, to: null };

/** What was done to users, tokens and webhook subscriptions, and by whom data was taken out. */
@Controller('app/stores/:account_id/audit')
export class AuditPageController {
  constructor(
    private readonly audit: AuditService,
    private readonly names: ActorNames,
    private readonly members: Members,
    private readonly times: StoreTimes,
    private readonly pages: Pages,
  ) {}

  @Get()
  @Operation('audit.read')
  async show(
    @Query('before') beforeParameter: string | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @CurrentStore() store: EnteredStore,
  ): Promise<void> {
    const before = /^[1-9]\d{0,14}$/.test(String(beforeParameter)) ? Number(beforeParameter) : null;
    // One more says whether there is another page.
    const range = { before, limit: PAGE_SIZE + 1 };
    const rows = await this.audit.list(store.id, NO_FILTER, range);
    const entries = rows.slice(0, PAGE_SIZE);
    const about = await this.names.of(entries.map(({ json }) => findSubject(json.subject)));
    const invitations = entries.flatMap(({ json }) => findInvitationId(json.subject) ?? []);
    const addresses = await this.members.invitedAddresses(store.id, invitations);
    const { day, minute } = await this.times.forStore(store.id);
    await this.pages.send(request, reply, {
      view,
      title: `Log · ${store.name}`,
      data: {
        entries: entries.map(({ json }, i) => ({
          at: minute(new Date(json.recorded_at)),
          who: describeActor(json.type, json.actor),
          from: json.ip_address ?? '',
          what: getAuditLabel(json.type),
          about: isAboutSelf(json)
            ? ''
            : (about[i] ?? addresses.get(findInvitationId(json.subject) ?? 0) ?? ''),
          details: describeDetails(json.subject, day),
          changes: describeChanges(json.subject),
        })),
        next: rows.length > PAGE_SIZE ? (entries.at(-1)?.id ?? null) : null,
        isFirst: before === null,
      },
    });
  }
}

/** Their name stands in the entry as who did it. */
function isAboutSelf({ actor, subject }: AuditEntryJson): boolean {
  const { type, id } = findSubject(subject);
  return type === 'user' && actor.type === type && actor.id === id;
}

/** The entry has no address, since it is never deleted. */
function findInvitationId(subject: object): number | undefined {
  return (subject as { invitation_id?: number }).invitation_id;
}

/** Whom or what an entry is about, to be called by name. */
function findSubject(subject: object): Actor {
  const {
    token_id: token,
    user_id: user,
    customer_id: customer,
  } = subject as { token_id?: number; user_id?: number; customer_id?: number };
  if (token !== undefined) return { type: 'token', id: token };
  if (customer !== undefined) return { type: 'customer', id: customer };
  return user === undefined ? { type: 'system', id: 0 } : { type: 'user', id: user };
}
