<?php
/**
 * More routes of the platform for tests: media, invitations, the feed, forums and settings, on the functions of
 * `platform.php`. They accept the parameters of the real platform and have its silent effects: a topic that is changed
 * without its status is opened, settings of a group that are not sent are reset, and a user who may not close comments
 * gets 200.
 */

if ( file_exists( __DIR__ . '/platform-off' ) ) {
	return;
}

add_action( 'rest_api_init', function () {
	test_files();
	test_waiting();
	test_feed();
	test_topics();
	test_settings();
} );

/** The item of a request in a collection, or null. */
function test_item( $collection, $request ) {
	return test_all( $collection )[ (int) $request['id'] ] ?? null;
}

function test_change( $collection, $id, $changes ) {
	$all        = test_all( $collection );
	$all[ $id ] = $changes + $all[ $id ];
	test_keep( $collection, $all );
	return $all[ $id ];
}

function test_files() {
	foreach ( array( 'media' => 'upload_ids', 'video' => 'upload_ids', 'document' => 'document_ids' ) as $kind => $ids ) {
		test_route( "/$kind/upload", 'POST', function ( $request ) use ( $kind ) {
			$file = $request->get_file_params()['file'] ?? null;
			if ( ! $file ) {
				return new WP_Error( "bp_rest_{$kind}_file_required", 'Sorry, you have not uploaded any file.', array( 'status' => 400 ) );
			}
			$upload = test_add( 'uploads', array( 'name' => $file['name'], 'size' => $file['size'], 'type' => $file['type'] ) );
			return $kind === 'document' ? $upload : array( 'upload_id' => $upload['id'], 'name' => $upload['name'] );
		} );
		test_route( "/$kind", 'POST', function ( $request ) use ( $kind, $ids ) {
			$upload = test_all( 'uploads' )[ (int) ( $request[ $ids ][0] ?? 0 ) ] ?? null;
			if ( ! $upload || ! test_me() ) {
				return new WP_Error( "bp_rest_no_{$kind}_found", 'Sorry, you are not allowed to create this item.', array( 'status' => 400 ) );
			}
			$made = test_add( $kind, array( 'title' => $upload['name'], 'size' => $upload['size'], 'user_id' => test_me(), 'privacy' => $request['privacy'] ?? 'public' ) );
			return $kind === 'document' ? $made : array( $made );
		}, test_required( $ids ) );
		test_collection( "/$kind", $kind, "bp_rest_{$kind}_invalid_id" );
	}
}

function test_waiting() {
	foreach ( array( 'invites' => 'bp_rest_group_invite_invalid_id', 'membership-requests' => 'bp_rest_group_membership_requests_invalid_id' ) as $kind => $code ) {
		test_route( "/groups/$kind", 'GET', fn( $request ) => test_page( test_all( $kind ), $request ), test_paging() );
		test_route( "/groups/$kind", 'POST', fn( $request ) => test_add( $kind, $request->get_json_params() ), test_required( 'group_id', 'user_id' ) );
		test_route( "/groups/$kind/(?P<id>[\\d]+)", 'GET,PUT,DELETE', function ( $request ) use ( $kind, $code ) {
			$all    = test_all( $kind );
			$waiting = test_item( $kind, $request );
			if ( ! $waiting ) {
				return test_missing( $code );
			}
			if ( $request->get_method() === 'GET' ) {
				return $waiting;
			}
			unset( $all[ $waiting['id'] ] );
			test_keep( $kind, $all );
			if ( $request->get_method() === 'PUT' ) {
				$members = test_all( "group_{$waiting['group_id']}" );
				$members[ $waiting['user_id'] ] = array( 'id' => $waiting['user_id'], 'role' => 'member' );
				test_keep( "group_{$waiting['group_id']}", $members );
				return $members[ $waiting['user_id'] ];
			}
			return array( 'deleted' => true, 'previous' => $waiting );
		} );
	}
}

function test_feed() {
	test_route( '/activity/(?P<id>[\d]+)/comment/(?P<comment_id>[\d]+)', 'GET,PUT,DELETE', function ( $request ) {
		$key = "comments_{$request['id']}";
		$all = test_all( $key );
		$id  = (int) $request['comment_id'];
		if ( ! isset( $all[ $id ] ) ) {
			return new WP_Error( 'bp_rest_invalid_id', 'Invalid activity comment ID.', array( 'status' => 404 ) );
		}
		$before = $all[ $id ];
		if ( $request->get_method() === 'PUT' ) {
			return test_change( $key, $id, array( 'content' => $request['content'] ) );
		}
		if ( $request->get_method() === 'DELETE' ) {
			unset( $all[ $id ] );
			test_keep( $key, $all );
			return array( 'deleted' => true, 'previous' => $before );
		}
		return $before;
	} );
	test_route( '/activity/(?P<id>[\d]+)/pin', 'PUT', function ( $request ) {
		$activity = test_change( 'activity', (int) $request['id'], array( 'is_pinned' => empty( $request['remove_pin'] ) ) );
		return array( 'feedback' => 'Your post has been pinned', 'activity' => $activity );
	} );
	test_route( '/activity/(?P<id>[\d]+)/close-comments', 'PUT', function ( $request ) {
		$activity = test_item( 'activity', $request );
		if ( (int) $activity['user_id'] !== test_me() ) {
			test_change( 'activity', (int) $request['id'], array( 'is_comment_closed' => false ) );
			return array( 'feedback' => 'You are not permitted with the requested operation', 'activity' => $activity );
		}
		$activity = test_change( 'activity', (int) $request['id'], array( 'is_comment_closed' => empty( $request['turn_on_comments'] ) ) );
		return array( 'feedback' => 'You turned off commenting for this post', 'activity' => $activity );
	} );
	test_route( '/reactions', 'GET', fn() => array( array( 'id' => 1, 'name' => 'like' ) ) );
	test_route( '/user-reactions', 'GET', fn( $request ) => test_page( test_all( 'reactions' ), $request ), test_paging() );
	test_route( '/user-reactions', 'POST', fn( $request ) => test_add( 'reactions', $request->get_json_params() ), test_required( 'reaction_id', 'item_type', 'item_id', 'user_id' ) );
	test_collection( '/user-reactions', 'reactions', 'bp_rest_user_reaction_invalid_id' );
}

function test_topics() {
	test_route( '/topics/(?P<id>[\d]+)', 'PUT', function ( $request ) {
		$topic = test_item( 'topics', $request );
		if ( ! $topic ) {
			return test_missing( 'bp_rest_topic_invalid_id' );
		}
		$status = $request['status'] ?? 'publish';
		return test_change( 'topics', $topic['id'], array( 'status' => $status, 'is_closed' => $status === 'closed', 'content' => $request['content'] ?? '' ) + $request->get_json_params() );
	}, test_required( 'title', 'parent' ) );
	test_route( '/topics/action/(?P<id>[\d]+)', 'POST', function ( $request ) {
		$value = (bool) $request['value'];
		switch ( $request['action'] ) {
			case 'close':
				return test_change( 'topics', (int) $request['id'], array( 'is_closed' => $value, 'status' => $value ? 'closed' : 'publish' ) );
			case 'sticky':
			case 'super_sticky':
				$topic = test_item( 'topics', $request );
				// A topic that is already sticky is not moved.
				$super = $value && ( empty( $topic['sticky'] ) ? $request['action'] === 'super_sticky' : ! empty( $topic['super_sticky'] ) );
				return test_change( 'topics', (int) $request['id'], array( 'sticky' => $value, 'super_sticky' => $super ) );
		}
		return new WP_Error( 'rest_invalid_param', 'Invalid parameter(s): action', array( 'status' => 400 ) );
	}, test_required( 'action' ) );
	test_route( '/topics/merge/(?P<id>[\d]+)', 'POST', function ( $request ) {
		$all    = test_all( 'topics' );
		$target = $all[ (int) $request['destination_id'] ] ?? null;
		if ( ! $target ) {
			return test_missing( 'bp_rest_topic_invalid_id' );
		}
		unset( $all[ (int) $request['id'] ] );
		test_keep( 'topics', $all );
		return $target;
	}, test_required( 'destination_id' ) );
	test_route( '/topics/split/(?P<id>[\d]+)', 'POST', function ( $request ) {
		if ( $request['split_option'] === 'existing' ) {
			return test_all( 'topics' )[ (int) $request['destination_id'] ] ?? test_missing( 'bp_rest_topic_invalid_id' );
		}
		$topic = test_item( 'topics', $request );
		return test_add( 'topics', array( 'title' => $request['new_destination_title'], 'parent' => $topic['parent'], 'author' => test_me() ) );
	}, test_required( 'reply_id', 'split_option' ) );
	test_route( '/reply/(?P<id>[\d]+)', 'PUT', function ( $request ) {
		$reply = test_item( 'replies', $request );
		return $reply ? test_change( 'replies', $reply['id'], array( 'content' => $request['content'], 'reply_to' => (int) $request['reply_to'] ) ) : test_missing( 'bp_rest_reply_invalid_id' );
	}, test_required( 'topic_id', 'content' ) );
}

function test_settings() {
	$names = array( 'group-status' => 'public', 'group-invite-status' => 'members', 'group-activity-feed-status' => 'members' );
	test_route( '/groups/(?P<id>[\d]+)/settings', 'GET,PUT', function ( $request ) use ( $names ) {
		$group = test_item( 'groups', $request );
		if ( ! $group ) {
			return test_missing( 'bp_rest_group_invalid_id' );
		}
		if ( $request['nav'] === 'forum' ) {
			$wanted = ! empty( $request['fields']['bbp-edit-group-forum'] );
			$forum  = $wanted ? test_add( 'forums', array( 'title' => $group['name'] ) )['id'] : 0;
			test_change( 'groups', $group['id'], array( 'forum' => $forum ) );
			return array( 'error' => '', 'notices' => 'Group settings were successfully updated.', 'data' => array() );
		}
		if ( $request->get_method() === 'PUT' ) {
			test_change( 'groups', $group['id'], array( 'settings' => $request['fields'] + $names ) );
			return array( 'error' => '', 'notices' => 'Group settings were successfully updated.', 'data' => array() );
		}
		$fields = array( array( 'name' => '', 'value' => '', 'type' => 'heading' ) );
		foreach ( ( $group['settings'] ?? array() ) + $names as $name => $value ) {
			$fields[] = array( 'name' => $name, 'value' => $value, 'type' => 'radio' );
		}
		return $fields;
	}, test_required( 'nav' ) );
	test_route( '/groups/(?P<id>[\d]+)/avatar', 'POST', function ( $request ) {
		$file = $request->get_file_params()['file'] ?? null;
		if ( ! $file || ( $_POST['action'] ?? '' ) !== 'bp_avatar_upload' ) {
			return new WP_Error( 'bp_rest_attachments_group_avatar_upload_error', 'Upload failed!', array( 'status' => 500 ) );
		}
		return array( array( 'full' => 'https://example.org/' . $file['name'], 'thumb' => 'https://example.org/thumb.png' ) );
	} );
	test_route( '/messages/group', 'POST', fn() => array( 'message' => 'Your message was sent.', 'errors' => array(), 'data' => array() ), test_required( 'group_id', 'users', 'type' ) );
	test_route( '/notifications/bulk/read', 'PUT', function () {
		$all = array_map( fn( $it ) => array( 'is_new' => 0 ) + $it, test_all( 'notifications' ) );
		test_keep( 'notifications', $all );
		return array();
	} );
}
