import { Body, Controller, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint, type EndpointSpec } from '#platform/http/endpoint.js';
import { Paged, PageQuery, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import {
  CancelAnnouncement,
  CreateCampaign,
  SendAnnouncement,
  UpdateCampaign,
} from './campaign.commands.js';
import {
  AnnouncementJson,
  CreateAnnouncementDto,
  PreviewAnnouncementDto,
  SendAnnouncementDto,
  toAnnouncementAttributes,
  toAudience,
  UpdateAnnouncementDto,
} from './announcement.dto.js';
import { Audiences } from './audiences.service.js';
import { CampaignsService } from './campaigns.service.js';
import { ReachJson, toReachJson } from './message-fields.dto.js';
import {
  MessageRecipientJson,
  RecipientListQuery,
  toMessageRecipientJson,
} from './message-recipient.dto.js';

const ANNOUNCEMENT = createRecordLookup(CampaignsService, (campaigns, accountId, { id = '' }) =>
  campaigns.find('announcement', accountId, parsePathId(id)),
);

/** What the operations on the store, and those on one announcement, have in common. */
const OF_STORE = {
  tag: 'Messages to customers',
  path: ['account_id'],
} satisfies Partial<EndpointSpec>;
const OF_ONE = {
  ...OF_STORE,
  path: ['account_id', 'id'],
  status: 200,
  record: ANNOUNCEMENT,
} satisfies Partial<EndpointSpec>;

@DeclaresTag({
  name: 'Messages to customers',
  order: 58,
  description: 'Messages that a store writes to the holders of its cards, once or by rules.',
})
@Controller('/api/v1/accounts/:account_id/announcements')
export class AnnouncementsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly campaigns: CampaignsService,
    private readonly audiences: Audiences,
  ) {}

  @Get()
  @Endpoint({
    ...OF_STORE,
    id: 'listAnnouncements',
    summary: 'List announcements',
    description: 'The announcements of a store, newest first.',
    status: 200,
    response: [AnnouncementJson],
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() page: PageQuery,
    @Paged() pages: PageReader,
  ): Promise<AnnouncementJson[]> {
    return pages.getPage(
      page,
      (range) => this.campaigns.list('announcement', accountId, range),
      ({ id }) => [id],
    );
  }

  @Post()
  @Endpoint({
    ...OF_STORE,
    id: 'createAnnouncement',
    summary: 'Create an announcement',
    description: 'A draft, which nobody gets before it is sent.',
    status: 201,
    response: AnnouncementJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  create(
    @Context() context: CommandContext,
    @Body() body: CreateAnnouncementDto,
  ): Promise<AnnouncementJson> {
    const attributes = toAnnouncementAttributes(body);
    return this.commands.execute(
      new CreateCampaign(context, { kind: 'announcement', state: 'draft', ...attributes }),
    );
  }

  @Post('preview')
  @Endpoint({
    ...OF_STORE,
    id: 'previewAnnouncement',
    readsMuch: true,
    summary: 'Count whom an announcement would reach',
    description:
      'Sends and stores nothing. The number of customers by channel, and why the others are not reached.',
    status: 200,
    response: ReachJson,
    errors: [404, 422],
  })
  async preview(
    @Context() { accountId }: CommandContext,
    @Body() body: PreviewAnnouncementDto,
  ): Promise<ReachJson> {
    return toReachJson(await this.audiences.preview(accountId, toAudience(body), body.channels));
  }

  @Get(':id')
  @Endpoint({
    ...OF_ONE,
    id: 'getAnnouncement',
    summary: 'Show an announcement',
    description: 'Its state, and what became of its messages.',
    response: AnnouncementJson,
    errors: [404],
  })
  show(
    @Context() { accountId }: CommandContext,
    @Param('id') id: string,
  ): Promise<AnnouncementJson> {
    return this.campaigns.get('announcement', accountId, parsePathId(id));
  }

  @Patch(':id')
  @Endpoint({
    ...OF_ONE,
    id: 'updateAnnouncement',
    summary: 'Update an announcement',
    description: 'Only the given fields change. Possible until it begins.',
    response: AnnouncementJson,
    errors: [404, 422],
  })
  update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: UpdateAnnouncementDto,
  ): Promise<AnnouncementJson> {
    const changes = toAnnouncementAttributes(body);
    const id = parsePathId(path);
    return this.commands.execute(new UpdateCampaign(context, 'announcement', id, changes));
  }

  @Post(':id/send')
  @Endpoint({
    ...OF_ONE,
    id: 'sendAnnouncement',
    summary: 'Send an announcement',
    description:
      'Now, or at a time within a year. In the quiet hours of the store its messages wait for their end. Sending it again changes nothing; until it begins, another time moves it.',
    response: AnnouncementJson,
    errors: [404, 422],
    codes: ['quota_exceeded'],
  })
  send(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() { send_at: sendAt }: SendAnnouncementDto,
  ): Promise<AnnouncementJson> {
    return this.commands.execute(new SendAnnouncement(context, parsePathId(path), sendAt));
  }

  @Post(':id/cancel')
  @Endpoint({
    ...OF_ONE,
    id: 'cancelAnnouncement',
    summary: 'Cancel an announcement',
    description: 'Possible until it begins. Cancelling it again changes nothing.',
    response: AnnouncementJson,
    errors: [404],
  })
  cancel(@Context() context: CommandContext, @Param('id') id: string): Promise<AnnouncementJson> {
    return this.commands.execute(new CancelAnnouncement(context, parsePathId(id)));
  }

  @Get(':id/recipients')
  @Endpoint({
    ...OF_ONE,
    id: 'listAnnouncementRecipients',
    readsMuch: true,
    summary: 'List the recipients of an announcement',
    description: 'Its messages by customer, each with its channel and what became of it.',
    response: [MessageRecipientJson],
    errors: [404, 422],
  })
  async listRecipients(
    @Context() { accountId }: CommandContext,
    @Param('id') path: string,
    @Query() { state, ...page }: RecipientListQuery,
    @Paged() pages: PageReader,
  ): Promise<MessageRecipientJson[]> {
    const id = parsePathId(path);
    const recipients = await pages.getPage(
      page,
      (range) => this.campaigns.listRecipients('announcement', accountId, id, state, range),
      ({ customerId }) => [customerId],
    );
    return recipients.map(toMessageRecipientJson);
  }
}
