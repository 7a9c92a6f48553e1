import { Body, Controller, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
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
    id: 'listAnnouncements',
    tag: 'Messages to customers',
    summary: 'List announcements',
    description: 'The announcements of a store, newest first.',
    path: ['account_id'],
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
    id: 'createAnnouncement',
    tag: 'Messages to customers',
    summary: 'Create an announcement',
    description: 'A draft, which nobody gets before it is sent.',
    path: ['account_id'],
    status: 201,
    response: AnnouncementJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  create(
    @Context() context: CommandContext,
    @Body() body: CreateAnnouncementDto,
  ): Promise<AnnouncementJson> {
    const attributes = { ...toAnnouncementAttributes(body), state: 'draft' as const };
    return this.commands.execute(new CreateCampaign(context, 'announcement', attributes));
  }

  @Post('preview')
  @Endpoint({
    id: 'previewAnnouncement',
    readsMuch: true,
    tag: 'Messages to customers',
    summary: 'Count whom an announcement would reach',
    description:
      'Sends and stores nothing. The number of customers by channel, and why the others are not reached.',
    path: ['account_id'],
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
    id: 'getAnnouncement',
    tag: 'Messages to customers',
    summary: 'Show an announcement',
    description: 'Its state, and what became of its messages.',
    path: ['account_id', 'id'],
    status: 200,
    response: AnnouncementJson,
    errors: [404],
    record: ANNOUNCEMENT,
  })
  show(
    @Context() { accountId }: CommandContext,
    @Param('id') id: string,
  ): Promise<AnnouncementJson> {
    return this.campaigns.get('announcement', accountId, parsePathId(id));
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateAnnouncement',
    tag: 'Messages to customers',
    summary: 'Update an announcement',
    description: 'Only the given fields change. Possible until it begins.',
    path: ['account_id', 'id'],
    status: 200,
    response: AnnouncementJson,
    errors: [404, 422],
    record: ANNOUNCEMENT,
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
    id: 'sendAnnouncement',
    tag: 'Messages to customers',
    summary: 'Send an announcement',
    description:
      'Now, or at a time within a year. In the quiet hours of the store its messages wait for their end. Sending it again changes nothing; until it begins, another time moves it.',
    path: ['account_id', 'id'],
    status: 200,
    response: AnnouncementJson,
    errors: [404, 422],
    codes: ['quota_exceeded'],
    record: ANNOUNCEMENT,
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
    id: 'cancelAnnouncement',
    tag: 'Messages to customers',
    summary: 'Cancel an announcement',
    description: 'Possible until it begins. Cancelling it again changes nothing.',
    path: ['account_id', 'id'],
    status: 200,
    response: AnnouncementJson,
    errors: [404],
    record: ANNOUNCEMENT,
  })
  cancel(@Context() context: CommandContext, @Param('id') id: string): Promise<AnnouncementJson> {
    return this.commands.execute(new CancelAnnouncement(context, parsePathId(id)));
  }

  @Get(':id/recipients')
  @Endpoint({
    id: 'listAnnouncementRecipients',
    readsMuch: true,
    tag: 'Messages to customers',
    summary: 'List the recipients of an announcement',
    description: 'Its messages by customer, each with its channel and what became of it.',
    path: ['account_id', 'id'],
    status: 200,
    response: [MessageRecipientJson],
    errors: [404, 422],
    record: ANNOUNCEMENT,
  })
  listRecipients(
    @Context() { accountId }: CommandContext,
    @Param('id') path: string,
    @Query() { state, ...page }: RecipientListQuery,
    @Paged() pages: PageReader,
  ): Promise<MessageRecipientJson[]> {
    const id = parsePathId(path);
    return pages.getPage(
      page,
      async (range) =>
        (await this.campaigns.listRecipients('announcement', accountId, id, state, range)).map(
          toMessageRecipientJson,
        ),
      ({ customer_id: customerId }) => [customerId],
    );
  }
}
