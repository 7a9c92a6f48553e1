import { toAnnouncementJson, type AnnouncementJson } from './announcement.dto.js';
import type { Campaign, CampaignKind } from './campaign.js';
import type { MessageCounts } from './message-recipient.js';
import { toMessageRuleJson, type MessageRuleJson } from './message-rule.dto.js';

/** How the API shows campaigns, by kind. */
export type CampaignJson = { announcement: AnnouncementJson; rule: MessageRuleJson };

const RENDER: {
  [K in CampaignKind]: (campaign: Campaign<K>, counts: MessageCounts) => CampaignJson[K];
} = { announcement: toAnnouncementJson, rule: toMessageRuleJson };

export function toCampaignJson<K extends CampaignKind>(
  campaign: Campaign<K>,
  counts: MessageCounts,
): CampaignJson[K] {
  return RENDER[campaign.kind](campaign, counts);
}
