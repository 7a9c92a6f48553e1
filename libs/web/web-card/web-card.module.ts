import { Module } from '@nestjs/common';
import { AppleWalletModule } from '#outbound/apple-wallet/apple-wallet.module.js';
import { GoogleWalletModule } from '#outbound/google-wallet/google-wallet.module.js';
import { PassesModule } from '#outbound/passes/passes.module.js';
import { CardStreams } from './card-streams.service.js';
import { MessageStopsController } from './message-stops.controller.js';
import { ConsentConfirmations } from './consent-confirmations.service.js';
import { PassLinks } from './pass-links.service.js';
import { PassLinksController } from './pass-links.controller.js';
import { WebCardController } from './web-card.controller.js';
import { WebPushController } from './web-push.controller.js';
import { WebPushModule } from './web-push.module.js';
import { RememberedCards } from './remembered-cards.service.js';
import { WalletBadges } from './wallet-badges.service.js';
import { WalletBadgesController } from './wallet-badges.controller.js';
import { WebCards } from './web-cards.service.js';

/** Serves the web card, and the two links that lead to it or to a wallet. */
@Module({
  imports: [AppleWalletModule, GoogleWalletModule, PassesModule, WebPushModule],
  controllers: [
    WebCardController,
    PassLinksController,
    WebPushController,
    WalletBadgesController,
    MessageStopsController,
  ],
  providers: [
    WebCards,
    CardStreams,
    ConsentConfirmations,
    PassLinks,
    RememberedCards,
    WalletBadges,
  ],
  exports: [RememberedCards, WebCards],
})
export class WebCardModule {}
